"""What the tests of tables and figures share."""

import hashlib
import json
import math
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from poet.launch.records import write_history, write_record
from suite.context import Context
from suite.discovery import find
from suite.judging import side_of
from suite.scale import load_scale
from tests.analyses.legibility import problems


def evaluated(spec, perplexity):
    """History and end of a record whose perplexity is a function of the share of training; where that is NaN, it diverged."""
    rows = []
    for step in (*range(spec.evaluate_every, spec.steps, spec.evaluate_every), spec.steps):
        value = perplexity(step / spec.steps)
        rows.append({"step": step, "tokens": step, "train_loss": 5.0, "validation_perplexity": value})
        if math.isnan(value):
            break
    return {"history": rows, "validation_perplexity": rows[-1]["validation_perplexity"]}


@pytest.fixture(autouse=True)
def drawn(monkeypatch):
    """The figures that a test has saved, each of which has to be legible. No file has a picture: to render them all would take half a minute."""
    figures = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, path, **options: Path(path).write_bytes(b"no picture\n" * 20))
    monkeypatch.setattr(plt, "close", lambda figure=None: figures.append(figure))
    yield figures
    monkeypatch.undo()
    found = [problems(figure) for figure in figures if figure is not None]
    plt.close("all")
    assert not any(found), found


@pytest.fixture
def recorded(tmp_path):
    """``recorded(artifact, record)``: a context with a record of every run of the artifact.

    ``scale`` is a scale or its name. ``record(spec)`` gives what a record says beside defaults; its key "history" holds rows of ``history.csv``.
    """

    def _recorded(artifact, record, scale="mini", seeds=(0,)):
        context = Context(load_scale({"scale": scale, "seeds": list(seeds)}) if isinstance(scale, str) else scale, tmp_path)
        for spec in artifact.runs(context.scale):
            values = {
                "validation_perplexity": 50.0,
                "trainable_parameters": 1,
                "cost": {"train_seconds": float(spec.steps)},
                "provenance": {"commit": "recorded"},
                **record(spec),
            }
            folder = context.results / "runs" / spec.name
            last = {"step": spec.steps, "tokens": spec.tokens, "validation_perplexity": values["validation_perplexity"]}
            digest = write_history(folder / "history.csv", values.pop("history", [last]))
            write_record(folder / "record.json", {"spec_digest": spec.digest, "history_sha256": digest, **values})
        for spec in artifact.finetunings(context.scale):
            write_record(context.results / "runs" / spec.name / "record.json", {"spec_digest": spec.digest, **record(spec)})
        return context

    return _recorded


@pytest.fixture
def probed(recorded):
    """``probed(artifact, measure, record)``: as ``recorded``, and every run with what its probes measured.

    ``measure(spec, probe, steps)`` gives {matrix: (steps, ...)} for all steps of a probe, or for the first of them if the
    run diverged.
    """

    def _probed(artifact, measure, record=lambda spec: {}, **options):
        context = recorded(
            artifact, lambda spec: {"status": "completed", "steps": spec.steps, **record(spec)}, **options
        )
        for spec in artifact.runs(context.scale):
            arrays = {}
            for probe, steps in spec.probes.items():
                found = measure(spec, probe, np.array(steps))
                arrays[f"{probe}/steps"] = np.array(steps[: len(next(iter(found.values())))])
                arrays |= {f"{probe}/{name}": values for name, values in found.items()}
            folder = context.results / "runs" / spec.name
            np.savez(folder / "probes.npz", **arrays)
            written = json.loads((folder / "record.json").read_text())
            written["probes_sha256"] = hashlib.sha256((folder / "probes.npz").read_bytes()).hexdigest()
            write_record(folder / "record.json", written)
        return context

    return _probed


@pytest.fixture
def measured_claims():
    """``measured_claims(name, context)``: of an artifact's claims that the scale can show, kind, side, effect, n and note by key.

    The side says where the effect lies: "inside" or "outside" of the claim's region, or "neither". Whether the scale is fit to judge
    is not asked.
    """

    def _measured(name, context):
        artifact, found = find(name), {}
        for claim in artifact.claims:
            if not artifact.why_unshown(claim, context.scale):
                at = claim.measure(context)
                side = side_of(at, claim.region)
                found[claim.key] = {"kind": claim.kind, "side": side, "effect": at.effect, "n": at.n, "note": at.note}
        return found

    return _measured
