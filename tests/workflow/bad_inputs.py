"""Bad inputs: ``python tests/workflow/bad_inputs.py`` tries each and exits with 1 unless the last line of each names thing and remedy.

With numbers (``3 17``) it tries those alone. Nothing is trained: Snakemake is called with ``-n``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

SMOKE = "config/scales/smoke.yaml"
#: What is called, and what its last line has to say.
CALLS = (
    # targets
    ("snakemake results/table99.csv", ("results/table99.csv", "nearest is results/table9.csv", "docs/artifacts.md")),
    ("snakemake results/tabel2.csv", ("results/tabel2.csv", "nearest is results/table2.csv")),
    ("snakemake figure10.png", ("figure10.png", "nearest is results/figures/figure10.png")),
    ("snakemake results/figures/figure99.pdf", ("figure99.pdf", "nearest is results/figures/figure9.pdf")),
    ("snakemake tabel2", ("tabel2", "nearest is results/table2.csv")),
    ("snakemake results/runs/smoke/7b/adamw/seed0/record.json", ("'smoke/7b/adamw/seed0'", "models are 60m")),
    ("snakemake results/runs/smoke/60m/sgd/seed0/record.json", ("'smoke/60m/sgd/seed0'", "methods are adamw")),
    ("snakemake results/runs/smoke/60m/adamw/seed9/record.json", ("'smoke/60m/adamw/seed9'", "seeds [0]")),
    ("snakemake results/mini/table2.csv", ("results/mini/table2.csv", "SCALE=mini")),
    ("snakemake results/table3.csv --config scale=gpu", ("table3 needs model 3b", "choose another scale")),
    ("why results/table99.csv --scale smoke", ("results/table99.csv", "nearest")),
    ("nearest table2", ("table2", "make results/table2.csv")),
    ("nearest figure10.png", ("figure10.png", "make results/figures/figure10.png")),
    # configuration
    ("snakemake all --config scale=big", ("'big'", "choose one of")),
    ("snakemake all --config sede=1", ("'sede'", "known are scale, seeds")),
    ("snakemake all --config seeds=1", ("seeds", "not 1", "such as [0, 1, 2]")),
    ("snakemake all --config seeds=[0,x]", ("seeds.1", "'x'", "such as [0, 1, 2]")),
    ("snakemake all --config seeds=0,1", ("seeds", "'0,1'", "such as [0, 1, 2]")),
    ("snakemake all --config seeds=[0,0]", ("twice", "name each once")),
    ("snakemake all --config seeds=[-1]", ("seeds.0", "not -1", "such as [0, 1, 2]")),
    ("snakemake all --config seeds=[]", ("seeds", "must not be empty", "such as [0, 1, 2]")),
    ("snakemake all --config seeds=[1000]", ("1000", "sweep", "such as [0, 1, 2]")),
    ("snakemake all --config resume=yes", ("resume", "'recorded'")),
    ("snakemake all --config scale=smoke resume=recorded", ("no recorded runs", "make record")),
    ("status --scale papr", ("'papr'", "choose one of")),
    ("status --seeds [0", ("'[0'", "such as [0,1,2]")),
    ("status --seeds []", ("must not be empty", "such as [0, 1, 2]")),
    ("status --seeds 3", ("not 3", "such as [0, 1, 2]")),
    ("status --seeds [-3]", ("not -3", "such as [0, 1, 2]")),
    ("plan --scale papr", ("'papr'", "choose one of")),
    ("plan --scale smoke --mfu 3", ("'3'", "such as 0.4")),
    ("plan --scale smoke --device abacus", ("abacus", "h100")),
    ("plan --scale smoke --artifact table99", ("table99", "table9")),
    ("compare results/none results/none", ("results/none",)),
    ("recorded verify --scale smoke", ("no recorded runs", "make record")),
    ("recorded build --scale big", ("'big'", "choose one of")),
    ("recorded import none.parquet --origin x", ("none.parquet",)),
)
#: What is changed in a scale's file, and what the last line has to say.
EDITS = (
    ("width_divisor: 16", "width_divisor: 16\ncolour: red", ("'colour'", "known are")),
    ("width_divisor: 16", "width_divisor: [16", ("smoke.yaml", "not YAML")),
    ("width_divisor: 16", "width_divisor: 48", ("block_size=256", "divisor 48")),
    ("width_divisor: 16", "width_divisor: 1", ("60m", "256 does not divide dimension 32", "choose")),
    ("divisible: 80", "divisible: 84", ("60m", "mlp", "does not divide dimension 84", "choose")),
    ("hidden_size: 32", "hidden_size: 36", ("60m", "does not divide dimension 36", "choose")),
    ("hidden_size: 32", "hidden_size: -32", ("models.60m.hidden_size", "greater than 0", "-32")),
    ("heads: 2", "heads: 3", ("3 heads", "32")),
    ("steps: 6", "stepz: 6", ("models.60m", "'stepz'", "known are")),
    ("steps: 6", "steps: 2.5", ("models.60m.steps", "integer", "2.5")),
    ("steps: 6, ", "", ("models.60m", "'steps' is missing")),
    ("batch_rows: 8", "batch_rows: many", ("batch_rows", "'many'")),
    ("vocabulary: 1024", "vocabulary: 0", ("vocabulary", "greater than 0")),
    ("vocabulary: 1024", "vocabulary: many", ("vocabulary", "'many'", "integer")),
    ("merge_every: 3", "merge_evry: 3", ("'merge_evry'", "merge_every")),
    ("merge_every: 3", "merge_every: soon", ("merge_every", "'soon'")),
    ("merge_every: 3", "merge_every: 3, neumann_terms: -1", ("neumann_terms", "0 or more")),
    ("merge_every: 3", "merge_every: 3, init: nice", ("init", "'nice'", "normalized")),
    ("merge_every: 3", "merge_every: 3, block_size: 12", ("60m", "12 does not divide", "choose")),
    ("minimum_lr_ratio: 0.01", "minimum_lr_ratio: 2", ("minimum_lr_ratio", "less than or equal to 1")),
    ("precision: fp32", "precision: fp16", ("precision", "'bf16'", "'fp16'")),
    ("corpus: enwik8", "corpus: enwik9", ("'enwik9'", "'enwik8'")),
    ("gpus: 0", "gpus: 0, gpu: 1", ("'gpu'", "known are")),
)
MODULES = {"why": "suite", "nearest": "suite", "compare": "suite", "plan": "suite.plan", "status": "suite.status", "recorded": "suite.recorded"}


def last_line(project, call: str) -> tuple[int, str, bool]:
    """Exit code, last line, and whether there was a traceback."""
    what, *arguments = call.split()
    if what == "snakemake":
        config = [] if "--config" in arguments else ["--config", "scale=smoke"]
        command = [*project.command("-n"), *arguments, *config]
    else:
        own = [what] if MODULES[what] == "suite" else []
        command = [sys.executable, "-m", MODULES[what], *own, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(project.folder)}
    done = subprocess.run(command, cwd=project.folder, env=environment, capture_output=True, text=True, timeout=600)
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return done.returncode, lines[-1] if lines else "", "Traceback" in done.stderr + done.stdout


def wrong(found: tuple[int, str, bool], words: tuple[str, ...]) -> str:
    """What a refusal lacks; empty if nothing."""
    code, line, traceback = found
    if traceback:
        return f"a traceback: {line}"
    if code == 0 or not line.startswith("error: "):
        return f"no refusal (exit code {code}): {line}"
    missing = [word for word in words if word not in line]
    return f"{missing} missing in: {line}" if missing else ""


def cases(project) -> list[Callable[[], tuple[str, str]]]:
    """Each tries an input, and gives its name with what is wrong with the answer."""

    def called(call: str, words: tuple[str, ...]) -> tuple[str, str]:
        return call, wrong(last_line(project, call), words)

    def edited(old: str, new: str, words: tuple[str, ...]) -> tuple[str, str]:
        path = project.folder / SMOKE
        text = path.read_text()
        project.edit(SMOKE, old, new)
        try:
            found = [wrong(last_line(project, call), words) for call in ("plan --scale smoke", "snakemake all")]
        finally:
            path.write_text(text)
        return f"{old} -> {new!r}", "; ".join(filter(None, found))

    return [*(lambda c=c: called(*c) for c in CALLS), *(lambda e=e: edited(*e) for e in EDITS)]


def main() -> int:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    from conftest import Project

    with tempfile.TemporaryDirectory() as folder:
        tries = cases(Project(Path(folder) / "project"))
        numbers = [int(word) for word in sys.argv[1:]] or range(len(tries))
        bad = 0
        for number in numbers:
            name, fault = tries[number]()
            bad += bool(fault)
            print(f"{number} {'BAD ' + fault if fault else 'ok'}: {name}", flush=True)
    print(f"{len(numbers)} bad inputs, {bad} without a last line that names thing and remedy")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
