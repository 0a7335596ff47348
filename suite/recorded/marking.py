"""Building an artifact, with a note on which of its runs were not trained here."""

from pathlib import Path

import pandas as pd

from suite.artifact import Artifact
from suite.context import Context
from suite.discovery import find, read_by
from poet.system.files import write_text
from poet.finetuning.spec import FinetuningSpec
from poet.training.spec import RunSpec
from suite.recorded.origin import foreign, sentence


def build_artifact(name: str, context: Context) -> None:
    """Write an artifact's files, and say in its tables which models they lack, and which runs were recorded and not trained here.

    A table's Markdown gets a sentence on them, and its CSV a column ``foreign`` if some of its runs are foreign. Figures and the
    report say it in their captions.

    Raises:
        UserError: whatever the artifact raises.
    """
    artifact = find(name)
    artifact.build(context)
    specs = runs_behind(artifact, context)
    lacking = context.scale.lacking and f"Built {context.scale.lacking}."
    notes, strange = list(filter(None, (lacking, sentence(context.home, specs)))), foreign(context.home, specs)
    for output in artifact.outputs:
        path = context.results / output
        if notes and output.endswith(".md"):
            write_text(path, "\n\n".join((path.read_text(encoding="utf-8").rstrip(), *notes)) + "\n")
        if strange and output.endswith(".csv"):
            frame = pd.read_csv(path, dtype=str, keep_default_na=False)
            write_text(path, frame.assign(foreign=strange).to_csv(index=False, lineterminator="\n"))


def take_times(artifact: Artifact, recorded: Path, results: Path) -> None:
    """Copy an artifact's recorded times, with a word in its Markdown."""
    for output in artifact.outputs:
        text = (recorded / Path(output).name).read_text(encoding="utf-8")
        write_text(results / output, f"{text.rstrip()}\n\nRecorded times, not measured here.\n" if output.endswith(".md") else text)


def caption(context: Context, artifact: Artifact, note: str = "") -> str:
    """An artifact's label and caption with the scale, a note if there is one, and which runs were recorded and not trained here."""
    said = sentence(context.home, artifact.specs(context.scale))
    return " ".join(part for part in (artifact.described(context.scale, note), said) if part)


def runs_behind(artifact: Artifact, context: Context) -> list[RunSpec | FinetuningSpec]:
    """The runs of an artifact, and of the artifacts that it is built from if the scale can make them."""
    read = (other.specs(context.of(name).scale) for name, other in read_by(artifact).items() if not other.missing(context.scale))
    return [spec for specs in (artifact.specs(context.scale), *read) for spec in specs]
