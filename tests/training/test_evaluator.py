"""The one evaluator: token-weighted, whatever the batch size."""

import contextlib
import math
import types

import pytest
import torch
from torch import nn

from poet.data.rows import IGNORED_LABEL, TokenRows
from poet.training.evaluator import perplexity, summed_loss


class Uniform(nn.Module):
    """Equal logits for each of V tokens."""

    def __init__(self, vocabulary=64):
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, input_ids):
        return types.SimpleNamespace(logits=self.logits.expand(*input_ids.shape, -1))


def by_hand(model, rows):
    """exp of the mean negative log-likelihood of every real token but the first of each row."""
    total, count = 0.0, 0
    for index in range(len(rows)):
        row = rows.batch([index])
        logs = model(input_ids=row).logits.double().log_softmax(-1)
        for position in range(1, row.shape[1]):
            if row[0, position] != rows.pad_id:
                total -= logs[0, position - 1, row[0, position]].item()
                count += 1
    return math.exp(total / count)


@pytest.fixture
def rows(data):
    rows = TokenRows(data, "validation")
    assert any((rows.batch([i]) == 0).any() for i in range(len(rows)))  # some are padded
    return rows


@pytest.mark.parametrize("batch", (1, 3, 10, 99))
def test_uniform_logits_give_the_vocabulary_size(rows, batch):
    assert perplexity(Uniform(), rows, 0, batch, contextlib.nullcontext) == pytest.approx(64, rel=1e-6)


@torch.no_grad()
def test_equals_a_hand_computation_at_every_batch_size(rows, llama):
    model = llama()
    for p in model.parameters():
        p.mul_(5)  # far from uniform, so that rows differ
    expected = by_hand(model, rows)
    assert abs(expected - 64) > 1
    for batch in (1, 2, 3, 4, 7, 10, 64):
        assert perplexity(model, rows, 0, batch, contextlib.nullcontext) == pytest.approx(expected, rel=1e-5)


def test_the_first_rows_are_read_once_each(rows, llama):
    model, seen = llama(), []
    model.register_forward_pre_hook(lambda m, a, k: seen.append(k["input_ids"].clone()), with_kwargs=True)
    for count, batch, expected in ((4, 3, [3, 1]), (0, 8, [8, 2]), (99, 10, [10])):
        seen.clear()
        perplexity(model, rows, count, batch, contextlib.nullcontext)
        assert [len(tokens) for tokens in seen] == expected
        assert torch.equal(torch.cat(seen), rows.batch(range(sum(expected))))


def test_summed_loss_ignores_padding_and_the_first_token(llama):
    model = llama()
    tokens = torch.tensor([[5, 6, 7, 0], [8, 9, 0, 0]])
    labels = tokens.masked_fill(tokens == 0, IGNORED_LABEL)
    loss, predicted = summed_loss(model, tokens, labels)
    assert predicted == 3
    logs = model(input_ids=tokens).logits.log_softmax(-1)
    expected = -(logs[0, 0, 6] + logs[0, 1, 7] + logs[1, 0, 9])
    torch.testing.assert_close(loss, expected)
    # What stands in the padding does not matter: attention is causal and its labels are masked.
    other, _ = summed_loss(model, torch.tensor([[5, 6, 7, 33], [8, 9, 44, 55]]), labels)
    torch.testing.assert_close(other, loss)


@pytest.mark.parametrize("training", (True, False))
def test_dropout_is_off_and_the_mode_restored(rows, training):
    class Noisy(Uniform):
        def forward(self, input_ids):
            assert not self.training
            return super().forward(input_ids)

    model = Noisy().train(training)
    perplexity(model, rows, 0, 4, contextlib.nullcontext)
    assert model.training is training


@pytest.mark.parametrize(("value", "check"), ((math.nan, math.isnan), (1e5, math.isinf)))
def test_nan_stays_nan_and_overflow_is_infinite(rows, value, check):
    model = Uniform()
    with torch.no_grad():
        model.logits[0] = value  # token 0 is never the target: its logit alone costs 1e5 nats a token
    assert check(perplexity(model, rows, 0, 4, contextlib.nullcontext))
