"""Claims about perplexities and counts: the paper's own numbers bear them out, their mirror image does not."""

import dataclasses
import math
import random

import numpy as np
import pytest
from analyses.common.grid import cell_runs
from analyses.common.published import printed_number, read_published
from suite.collection import distinct
from suite.context import Context
from suite.discovery import find
from suite.judging import scope_of, side_of
from suite.scale import load_scale
from tests.analyses.conftest import evaluated
from tests.claims import artifact

SEEDS = (0, 1, 2)
#: Orders of four rows: all 24 of them are too few for any to have a two-sided p-value below 5%.
FOUR_ROWS = {"table5-rank-agreement", "table7-more-terms-better"}
#: Claims that hold or fail by counting, whatever is trained, and their verdicts.
COUNTED = {
    "table2-counts-baselines": "inside",
    "table2-counts-poet-bs": "outside",  # 118.26M
    "table2-counts-poet-fs": "inside",
    "table2-fewer-parameters": "inside",
    "table2-one-tenth": "inside",
    "table2-six-million-fewer": "inside",  # 6.23M
}


def noise(spec):
    """Small, and the same whenever it is asked for; beside it a seed has a part that all its runs share."""
    return random.Random(spec.name).gauss(0, 0.001) + 0.3 * spec.seed


def printed(name, *columns):
    """{what stands in some columns: printed perplexity}; NaN for words."""
    rows = read_published(name).to_dict("records")
    return {tuple(p[c] for c in columns): float(p["perplexity"]) if p["perplexity"][0].isdigit() else math.nan for p in rows}


TABLES = {
    "table2": printed("table2", "model", "variant"),
    "table3": printed("table3", "method"),
    "table5": printed("table5", "scheme"),
    "table6": printed("table6", "merge_every"),
    "table7": printed("table7", "scheme"),
    "figure5": printed("figure5", "h", "share_r"),
}
SCHEMES = {"standard": "Standard", "xavier": "Xavier", "uniform_spectrum": "Uni. spectrum", "normalized": "Normalized"}


def of_figure5(spec):
    share = spec.parameters["share_r"]
    return TABLES["figure5"][f"{1 / spec.parameters['budget']:.0f}", f"{0.5 if share is None else share:g}"]


#: What each artifact's runs end with in the paper; for Figure 9 and the controls, numbers that agree with what it says.
PAPER = {
    "table2": lambda s: TABLES["table2"].get((s.model, s.variant), 26.0),  # of a row that somebody adds nothing is printed
    "table3": lambda s: TABLES["table3"][("AdamW" if s.method == "adamw" else "POET FS b=1/2",)],
    "table5": lambda s: TABLES["table5"][(SCHEMES[s.parameters["init"]],)],
    "table6": lambda s: TABLES["table6"][(str(5 * s.parameters["merge_every"]),)],
    "table7": lambda s: TABLES["table7"][(f"k={s.parameters['neumann_terms']}",)],
    "figure5": of_figure5,
    "figure9": lambda s: {480: 26.68, 960: 26.3, 1440: 26.05}[s.steps] if s.method == "adamw" else 25.37,
    "controls": lambda s: 20.0 if s.method == "poet" else 25.0,
}


def write_counts(results, change=lambda frame: frame):
    """What claims read of ``table2.csv``: the printed counts, but for the one that the models do not give."""
    frame = read_published("table2").rename(columns={"trainable": "published_trainable"}).assign(method="a row")
    frame["counted_trainable"] = frame.published_trainable.replace("118.26M", "118.29M")
    frame["counted_trainable_exact"] = frame.counted_trainable.map(printed_number)
    frame["trainable_agrees"] = np.where(frame.counted_trainable == frame.published_trainable, "yes", "no")
    results.mkdir(exist_ok=True)
    change(frame).to_csv(results / "table2.csv", index=False)


@pytest.fixture(autouse=True)
def _fewer_orders(monkeypatch):
    """tests/suite/test_statistics.py has p-values of as many orders as a table's; here the sides matter."""
    monkeypatch.setattr("suite.statistics._ENUMERATED", 6)
    monkeypatch.setattr("suite.statistics._DRAWS", 999)


@pytest.fixture
def lines(recorded, measured_claims):
    """``lines(name, perplexity)``: of the trained claims that mini scale can judge, on runs that end with those perplexities."""

    def _lines(name, perplexity, seeds=SEEDS):
        context = recorded(find(name), lambda s: {"validation_perplexity": perplexity(s) + noise(s)}, seeds=seeds)
        write_counts(context.results)
        return {key: at for key, at in measured_claims(name, context).items() if key not in COUNTED}

    return _lines


@pytest.fixture
def sides(lines):
    """``sides(name, perplexity)``: those of ``lines``."""
    return lambda *args, **options: {key: at["side"] for key, at in lines(*args, **options).items()}


@pytest.mark.parametrize("name", PAPER)
def test_the_papers_own_numbers_reproduce_every_claim(lines, name):
    found = lines(name, PAPER[name])
    undecided = {key for key, at in found.items() if at["side"] != "inside"}
    assert found and undecided == FOUR_ROWS & set(found)
    assert [at["effect"] for at in found.values() if at["kind"] == "rank agreement" and at["effect"] < 1 - 1e-9] == []


@pytest.mark.parametrize("name", [name for name in PAPER if name != "table7"])
def test_reversed_numbers_contradict_every_ordering(sides, name):
    """60 - p: what was better is worse by as much."""
    found = sides(name, lambda s: 60 - PAPER[name](s))
    found.pop("table2-poet-trains-stably", None)
    assert found and {key for key, side in found.items() if side != "outside"} == FOUR_ROWS & set(found), found


def test_one_seed_decides_nothing_that_is_trained(sides):
    for name in ("table3", "table5", "table7", "figure5", "figure9"):
        assert set(sides(name, PAPER[name], seeds=(0,)).values()) == {"neither"}, name


def test_counts_are_judged_by_counting(tmp_path, measured_claims):
    context = Context(load_scale({"scale": "mini", "seeds": [0]}), tmp_path)

    def counted():
        trained = dataclasses.replace(context.scale, name="smoke")  # which judges nothing that is trained
        assert {claim.key for claim in find("table2").claims if claim.exact} == set(COUNTED)
        return measured_claims("table2", dataclasses.replace(context, scale=trained))

    write_counts(tmp_path)
    found = counted()
    assert {key: at["side"] for key, at in found.items()} == COUNTED
    assert found["table2-counts-poet-bs"]["effect"] == 1 and "118.29M" in found["table2-counts-poet-bs"]["note"]
    assert found["table2-counts-poet-fs"]["n"] == 12 and found["table2-fewer-parameters"]["note"] == "POET BS b=256 at 60m"
    # Models that are counted wrong are found out.
    write_counts(tmp_path, lambda t: t.assign(counted_trainable_exact=t.counted_trainable_exact.where(t.variant != "adamw", 1e6)))
    assert [counted()[f"table2-{key}"]["side"] for key in ("one-tenth", "fewer-parameters")] == ["outside"] * 2
    write_counts(tmp_path, lambda t: t.assign(trainable_agrees="no"))
    assert counted()["table2-counts-baselines"]["effect"] == 12


def test_each_model_and_each_row_is_judged_by_its_own_runs(sides):
    """POET-BS is spoilt on one model, and AdamW is good on another: the claims about them fall, and no other."""
    changed = {("130m", "poet-bs-b256"): 80.0, ("1.3b", "adamw"): 14.0}
    found = sides("table2", lambda s: changed.get((s.model, s.variant)) or PAPER["table2"](s))
    assert {key for key, verdict in found.items() if verdict == "outside"} == {
        "table2-poet-bs-b256-below-adamw-130m",
        "table2-poet-below-galore-130m",
        "table2-best-130m",
        "table2-larger-budgets-130m",
        "table2-bs-below-fs-130m",
        "table2-poet-bs-b256-below-adamw-1.3b",
        "table2-second-best-1.3b",
    }


def test_runs_that_fail_are_no_stable_training(recorded):
    """One of six rows diverges and one ends as a guess among 1,024 tokens: two thirds are left."""
    ends = {"poet-fs-1_8": math.nan, "poet-bs-b64": 1020.0}
    context = recorded(find("table2"), lambda s: {"validation_perplexity": ends.get(s.variant, 50.0)}, seeds=SEEDS)
    claim = next(claim for claim in find("table2").claims if claim.key == "table2-poet-trains-stably")
    found = claim.measure(context)
    assert (found.effect, found.n, side_of(found, claim.region)) == (pytest.approx(2 / 3), 72, "outside")


def test_perplexities_themselves_are_left_to_the_papers_scale(recorded):
    artifact = dataclasses.replace(find("table2"), runs=lambda scale: cell_runs(scale, "1.3b", "poet-fs-1_2"))
    context = recorded(artifact, lambda s: {"validation_perplexity": 13.7 + noise(s)}, seeds=SEEDS)
    claim = next(claim for claim in artifact.claims if claim.key == "table2-perplexity-poet-fs-1_2-1.3b")
    assert artifact.why_unshown(claim, context.scale) and scope_of(claim, artifact, "mini") == "paper"
    assert claim.measure(context).effect == pytest.approx(14.0 / 13.7, abs=1e-4)  # 0.3 more for each seed
    assert claim.region[0] < 1 < claim.region[1]


def test_a_tie_with_the_best_is_not_the_best(sides):
    found = sides("table5", lambda s: 25.0)
    assert "inside" not in (found["table5-normalized-best"], found["table5-uniform-worst"])


def test_table_7_tells_divergence_from_convergence(sides):
    fewer_are_better = sides("table7", lambda s: 100.0 + s.parameters["neumann_terms"] ** 2)
    assert fewer_are_better.pop("table7-k1-to-k4-converge") == "inside"
    assert fewer_are_better.pop("table7-more-terms-better") == "neither"  # four rows
    assert set(fewer_are_better.values()) == {"outside"}, fewer_are_better
    collapse = sides("table7", lambda s: {0: 1023.0, 1: math.nan}.get(s.parameters["neumann_terms"], 100.0))
    assert (collapse["table7-k0-diverges"], collapse["table7-k1-to-k4-converge"]) == ("inside", "outside")


def test_more_terms_are_slower_where_time_is_measured(recorded):
    claim = next(c for c in find("table7").claims if c.key == "table7-more-terms-slower")
    context = recorded(find("table7"), lambda s: {"cost": {"train_seconds": 10.0 + s.parameters["neumann_terms"]}}, seeds=SEEDS)
    assert claim.measure(context).effect == pytest.approx(math.log(14 / 11))


def test_one_budget_that_prefers_r_says_nothing_of_the_others(sides):
    prefers = lambda s: s.parameters["share_r"] == 1.0 and s.parameters["budget"] == 0.25
    found = sides("figure5", lambda s: of_figure5(s) - 20 * prefers(s))
    assert found["figure5-even-best-small"] == found["figure5-even-best-large"] == "inside"
    assert found["figure5-even-best-medium"] == found["figure5-poet-below-orthogonal-training"] == "outside"


def test_each_length_of_adamws_training_is_its_own_claim(sides):
    """AdamW is ahead on three times the tokens alone."""
    found = sides("figure9", lambda s: 25.0 if s.steps == 1440 else PAPER["figure9"](s))
    assert found == {"figure9-poet-below-adamw-2x": "inside", "figure9-poet-below-adamw-3x": "outside"}


def test_every_claim_is_whole_and_measured_on_runs_that_its_artifact_asks_for(recorded):
    found = {name: find(name) for name in (*PAPER, "figure8", "figure26")}
    every = lambda scale: list(distinct({name: about.runs(scale) for name, about in found.items()}).values())
    context, keys = recorded(artifact(runs=every), lambda spec: evaluated(spec, lambda share: 90 + noise(spec) - share * spec.steps / 100), seeds=(0, 1)), []
    write_counts(context.results)
    for name, about in found.items():
        asked = set(about.runs(context.scale))
        assert about.claims, name
        for claim in about.claims:
            keys.append(claim.key)
            assert claim.key.startswith(f"{name}-") and claim.place and claim.region[0] <= claim.region[1], claim.key
            assert claim.says.endswith(".") and claim.rule.endswith("."), claim.key
            evidence = claim.measure(context)
            assert evidence.n and (evidence.low <= evidence.high or evidence.p <= 1) and not math.isnan(evidence.effect), claim.key
            assert len(set(evidence.runs)) == len(evidence.runs) and set(evidence.runs) <= asked, claim.key
            if claim.key not in COUNTED:
                assert {spec.seed for spec in evidence.runs} == {0, 1}, claim.key
                assert set(claim.models) <= {spec.model for spec in evidence.runs}, claim.key
    assert len(set(keys)) == len(keys) and set(COUNTED) < set(keys)
