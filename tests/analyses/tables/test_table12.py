"""Table 12 from records: what it prints, and when it judges."""

import math

import pandas as pd
import pytest

from analyses.tables.table12 import ARTIFACT, CLAIMS, LABELS, NAMES, POET
from poet.finetuning.rouge import METRICS
from suite.claim import NEGATIVE
from suite.collection import distinct
from suite.grounds import Grounds
from suite.judging import judge
from suite.recorded.run import sha256
from suite.scale import load_scale
from suite.summarization import BART_LR, DECODING, pretraining

(POET_BEST,) = CLAIMS
LEAD = 20.0


@pytest.fixture
def table(recorded):
    """``table(score)``: the context and CSV where a run's ROUGE is ``score(spec)`` by every metric, and 5 more by ROUGE-Lsum, as the lead's."""

    def make(score, scale="mini"):
        said = '["the same", "a reference"]\n["the same", "another"]\n'

        def record(spec):
            if not spec.base:
                return {"metric": 4.25, "steps": 976}
            kind = "real" if spec.task == "xsum" else "stand-in"
            origin = {"kind": kind, "sentence": f"{kind}: a rule for {spec.task}"}
            rouge, lead = ({metric: value + 5 * (metric == "rougeLsum") for metric in METRICS} for value in (score(spec), LEAD))
            counts = {"trainable_parameters": 1234, "examples": {"train": 640, "validation": 9000}}
            loss = score(spec) / 10 + (spec.task == "xsum")
            return {"metric": loss, "rouge": rouge, "lead": lead, "lead_sentences": 3 - 2 * (spec.task == "xsum"), "origin": origin, "summaries_sha256": sha256(texts(spec).encode()), **counts}

        def texts(spec):
            return said if spec.method == "oft" else said.replace("the same", "other", 1)

        context = recorded(ARTIFACT, record, scale)
        for spec in (spec for spec in ARTIFACT.finetunings(context.scale) if spec.base):
            (context.results / "runs" / spec.name / "summaries.jsonl").write_text(texts(spec))
        ARTIFACT.build(context)
        return context, pd.read_csv(context.results / "table12.csv")

    return make


def spread(spec):
    return 0.1 * spec.seed


def better(spec):
    """The others' scatter is not POET's: a difference has one too."""
    return 25 + spread(spec) * (1 + 0.1 * (spec.method == "poet")) + 3 * (spec.method == "poet")


def judged(context):
    return judge(POET_BEST, ARTIFACT, POET_BEST.measure(context), context, Grounds(context, []))


def test_every_cell_stands_beside_the_printed_one(table):
    context, frame = table(lambda spec: 30 + spread(spec))
    assert len(frame) == 4 * 2 * 4 and (frame.n == 5).all() and (frame.learned == "yes").all() and (frame.learning_rate == BART_LR).all()
    cell = frame[(frame.method == POET) & (frame.task == "CNN/DailyMail")].set_index("metric")
    assert cell.published.dropna().to_dict() == {"ROUGE-1": 44.27, "ROUGE-2": 21.29, "ROUGE-L": 41.02} and math.isnan(cell.published["ROUGE-Lsum"])
    assert cell.measured["ROUGE-Lsum"] == pytest.approx(35.2) and (cell.low < cell.measured).all() and (cell.measured < cell.high).all()
    text = (context.results / "table12.md").read_text()
    assert "| 144.57M / 144.57M / **1,234** |" in text and "44.27 / **30.20** ± 0.16 / 30.20" in text and "– / **35.20** ± 0.16 / 35.20" in text
    assert "lead (XSum: 1, CNN/DailyMail: 3 sentences)" in text and "| 20.00 |" in text and "real: a rule for xsum" in text
    assert "for 976 steps to a loss of 4.25 nats a token" in text and "no rate is tuned for it" in text
    assert "5.00 above ROUGE-L (1.25 times as much) for the lead, and 5.00 above ROUGE-L (1.17 times as much) for those that were written" in text
    assert "In 10 of 40 runs the model writes one and the same text for every document." in text
    assert "of these 640 are trained on and 9,000 measured" in text


def test_the_validation_loss_stands_beside_rouge_and_one_rate_is_called_a_confound(table):
    context, frame = table(lambda spec: 30 + spread(spec) + 5 * (spec.method == "oft"))
    text = (context.results / "table12.md").read_text()
    assert "CNN/DailyMail (stand-in): LoRA (r=32) 3.020, OFT (b=64) 3.520, Full FT 3.020, POET (FS, b=1/2) 3.020." in text and "XSum (real): LoRA (r=32) 4.020" in text
    assert "One rate for all is a confound" in text and frame["median"].round(6).isin([30.2, 35.2, 40.2]).all()


def test_stand_ins_are_called_so_in_the_figure_its_caption_and_the_claim(table, drawn):
    context, _ = table(better)
    said = "Stand-ins, made by a rule, take the place of the data of CNN/DailyMail"
    assert f"{said}." in (context.results / "figures/table12.txt").read_text() and POET_BEST.measure(context).note == said
    titles = [axis.get_title() for axis in drawn[0].axes]
    assert "CNN/DailyMail (stand-in)\nROUGE-L" in titles and "XSum (real)\nROUGE-L" in titles


def test_below_the_lead_no_order_is_judged(table):
    context, frame = table(lambda spec: LEAD - 6 + spread(spec))
    text = (context.results / "table12.md").read_text()
    assert (frame.learned == "no").all() and "**No order is judged**" in text and "those that were written" not in text
    evidence = POET_BEST.measure(context)
    assert {spec for spec in ARTIFACT.finetunings(context.scale) if spec.base} == set(evidence.runs)
    assert math.isnan(evidence.effect) and evidence.note.startswith("nothing was learned that can be compared; Stand-ins") and judged(context).result == "undecided"


def test_the_claim_holds_where_every_cell_says_so(table):
    context, _ = table(better)
    evidence = POET_BEST.measure(context)
    assert NEGATIVE[0] <= evidence.low <= evidence.high < 0 and evidence.n == 5
    assert judged(context).pending == "same direction"


def test_one_cell_against_it_is_enough(table):
    context, _ = table(lambda spec: 31 + 2 * spread(spec) if (spec.method, spec.task) == ("full", "xsum") else better(spec))
    assert judged(context).pending == "opposite direction"


def test_what_was_not_learned_is_left_out_and_leaves_the_claim_open(table):
    context, frame = table(lambda spec: better(spec) - 10 * (spec.task == "xsum"))
    assert set(frame[frame.learned == "yes"].task) == {"CNN/DailyMail"}
    evidence = POET_BEST.measure(context)
    assert evidence.note.startswith("9 of 18 comparisons left out: neither method has learned") and judged(context).result == "undecided"


def test_a_diverged_run_is_told(table):
    context, frame = table(lambda spec: math.nan if (spec.seed, spec.method) == (0, "lora") else 30 + spread(spec))
    assert frame[frame.method == "LoRA (r=32)"].diverged.eq(1).all() and frame[frame.method == "LoRA (r=32)"].learned.eq("no").all()
    text = (context.results / "table12.md").read_text()
    assert "diverged (1 of 5)" in text and "mean over 5 seeds of finetuning" in text and "is not known: a run diverged" in text and "LoRA (r=32) diverged, OFT" in text


@pytest.mark.parametrize("scale", ["smoke", "mini", "night", "gpu", "paper"])
def test_every_run_starts_from_the_scale_s_bart(scale):
    asked = load_scale({"scale": scale, "seeds": [0]})
    runs = distinct({"table12": ARTIFACT.finetunings(asked)})
    own = pretraining(asked)
    finetuned = [spec for spec in runs.values() if spec.base]
    assert len(finetuned) == 4 * 2 * asked.settings.summarization.seeds and len(runs) - len(finetuned) == len(own) == (scale not in ("gpu", "paper"))
    assert len({(spec.base, spec.base_digest) for spec in finetuned}) == 1
    assert all((spec.name, spec.digest) == (finetuned[0].base, finetuned[0].base_digest) and spec.architecture for spec in own)
    divisor = asked.settings.width_divisor
    parameters = {spec.method: spec.parameters for spec in finetuned}
    assert parameters["lora"]["rank"] == 32 // divisor and parameters["oft"]["block_size"] == 64 // divisor and parameters["poet"]["budget"] == 0.5
    assert parameters["poet"]["init"] == "keep", "POET starts from the pretrained weights"
    for spec in finetuned:
        authors = DECODING[spec.task]
        assert (spec.decoding.beams, spec.decoding.length_penalty) == (authors.beams, authors.length_penalty)
        assert spec.decoding.shortest <= spec.decoding.longest < spec.sequence_length and spec.decoding.longest <= authors.longest
        if scale in ("mini", "night", "gpu", "paper"):
            assert spec.decoding == authors
    assert {label: METRICS[i] for i, label in enumerate(LABELS.values())} == {LABELS[m]: m for m in METRICS} and list(NAMES) == ["XSum", "CNN/DailyMail"]
