"""Figure 5: constant totals divided between R and P."""

import pytest

from analyses.common.grid import grid_runs
from analyses.common.published import read_published
from analyses.figures import figure5
from suite.scale import load_scale
from tests.analyses.legibility import error_bars


# The other scales have these models' sizes.
@pytest.mark.parametrize(("name", "tolerance"), [("mini", 0.07), ("paper", 0.01)])
def test_every_split_fits_its_matrices_and_keeps_the_total(name, tolerance):
    cells = figure5.specs(load_scale({"scale": name, "seeds": [0]}))
    totals = {
        budget: sum(figure5.parameters_of_sides(cells[budget, figure5.STANDARD][0])) for budget in figure5.BUDGETS
    }
    for (budget, share), (spec,) in cells.items():
        r, p = figure5.parameters_of_sides(spec)
        # Block sizes are whole: where a block has five coordinates, one more changes its count by half.
        assert r + p == pytest.approx(totals[budget], rel=tolerance)
        if share != figure5.STANDARD:
            assert r / (r + p) == pytest.approx(share, abs=0.012)


def test_standard_poet_is_table_2s_run_and_gives_p_more():
    scale = load_scale({"scale": "mini", "seeds": [0]})
    known = {spec.name: spec for spec in grid_runs(scale)}
    cells = figure5.specs(scale)
    assert all(
        known[cells[budget, figure5.STANDARD][0].name] == cells[budget, figure5.STANDARD][0]
        for budget in ("small", "medium")
    )
    r, p = figure5.parameters_of_sides(cells["small", figure5.STANDARD][0])
    assert r < p


def test_published_values_have_a_line_each_and_the_balanced_split_wins():
    printed = read_published("figure5")
    wanted = {(budget, str(h), f"{share:g}") for budget, (h, _) in figure5.BUDGETS.items() for share in figure5.SHARES}
    assert set(zip(printed.budget, printed.h, printed.share_r, strict=True)) == wanted and len(printed) == len(wanted)
    assert "read off the figure" in printed.source[0]


def test_table_and_best_split(recorded):
    def record(spec):
        share = spec.parameters["share_r"]
        return {
            "validation_perplexity": 60.0 if share is None else 70 + 10 * abs(share - 0.75),
            "trainable_parameters": 42,
        }

    context = recorded(figure5.ARTIFACT, record)
    figure5.build(context)
    frame = figure5.table(context)
    assert len(frame) == 3 * 8 and frame.measured.min() == 60.0
    assert figure5.best_shares(frame, "measured") == dict.fromkeys(("small", "medium", "large"), figure5.STANDARD)
    assert figure5.best_shares(frame, "published") == dict.fromkeys(("small", "medium", "large"), figure5.STANDARD)
    # What the paper prints at one half is standard POET.
    assert frame.published[frame.share_r == figure5.EVEN].isna().all() and frame.published[frame.share_r.isna()].tolist() == [34.07, 28.70, 26.95]
    assert figure5.effects(frame, "measured") == pytest.approx(dict.fromkeys(("small", "medium", "large"), 77.5 / 60 - 1))
    assert figure5.effects(frame, "published")["large"] == pytest.approx(31.11 / 26.95 - 1)
    line = frame[(frame.budget == "large") & (frame.share_r == 0.9)].iloc[0]
    assert (
        line.published == 27.95
        and (line.parameters_r, line.parameters_p) == (3276, 350)
        and line.trainable_parameters == 42
    )
    assert line.variant == "poet-fs-1_4-budget=0.333333-share_r=0.9"
    assert all((context.results / output).stat().st_size > 100 for output in figure5.ARTIFACT.outputs)


def test_error_bars_and_fitness_are_said_beside_the_figure(recorded, drawn):
    for seeds, said in (((0,), "n = 1: no error bars."), ((0, 1), "Bars: one standard deviation either side, n = 2 seeds.")):
        context = recorded(figure5.ARTIFACT, lambda spec: {"validation_perplexity": 60.0 + spec.seed}, seeds=seeds)
        figure5.build(context)
        caption = (context.results / "figures/figure5.txt").read_text()
        assert said in caption and "By these runs the mini scale is not fit to judge orders (control " in caption
        assert error_bars(drawn[-1]) == (0 if len(seeds) == 1 else len(figure5.BUDGETS) * (len(figure5.SHARES) + 1))
        assert drawn[-1].axes[0].get_title() == "60m proxy, 32 wide, measured"
