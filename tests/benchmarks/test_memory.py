"""Peaks of allocation with known answers."""

import torch

from benchmarks.memory import held_bytes, peak_bytes

MEGABYTE = 2**20
COUNT = MEGABYTE // 4  # of fp32 numbers


def test_what_lives_at_once_adds_up_and_what_follows_does_not():
    def one_after_another():
        for _ in range(5):
            torch.empty(3 * COUNT)

    def together():
        return [torch.empty(3 * COUNT) for _ in range(5)]

    assert peak_bytes(one_after_another) == 3 * MEGABYTE
    assert peak_bytes(together) == 15 * MEGABYTE


def test_a_temporary_inside_one_operation_counts():
    x = torch.ones(1024, 1024).t()
    # The sum of a product needs the whole product for a moment, and leaves one number.
    assert 4 * MEGABYTE <= peak_bytes(lambda: (x * x).sum()) < 4.1 * MEGABYTE
    assert peak_bytes(lambda: x.mul_(1.0)) < 0.1 * MEGABYTE


def test_what_was_there_before_is_neither_counted_nor_taken_off():
    kept = [torch.empty(8 * COUNT)]

    def replace():
        kept.clear()
        kept.append(torch.empty(2 * COUNT))

    for _ in range(3):  # the first releases what no profiler saw, the others what the profiler saw before
        assert peak_bytes(replace) == 2 * MEGABYTE


def test_an_operators_own_temporaries_count():
    @torch.library.custom_op("benchmarks_test::wasteful", mutates_args=())
    def wasteful(x: torch.Tensor) -> torch.Tensor:
        return torch.empty(6 * COUNT)[:1] + x

    assert 6 * MEGABYTE <= peak_bytes(lambda: wasteful(torch.zeros(1))) < 6.1 * MEGABYTE


def test_backward_is_part_of_a_call():
    weight = torch.randn(512, 512, requires_grad=True)

    def call():
        weight.sum().backward()
        weight.grad = None

    assert peak_bytes(call) >= MEGABYTE  # the gradient; forward takes four bytes


def test_views_are_held_once():
    x = torch.empty(COUNT)
    assert held_bytes([x, x[10:], x.view(2, -1)]) == MEGABYTE
    assert held_bytes([x, torch.empty(COUNT)]) == 2 * MEGABYTE
