"""What a second reading of the text changes: ``python tools/rereading.py night``, with the scale's data prepared.

For every recorded run that reads the text more than once, prints training loss minus validation loss in nats. If a model learns rows by
heart, this difference falls with each reading.

- More than once and at most twice: over the second reading, and over the two stretches of the same length before it. Here the difference
  falls further at the second reading than between the two stretches before, if rows are learned by heart.
- More than twice: over each reading, the last of which may be a part.
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poet.data.rows import read_meta
from poet.system.errors import command_line
from suite.collection import DATA
from suite.recorded.archive import archive_path, read
from suite.scale import dataset_name, load_scale


def stretches(history: pd.DataFrame, text: int) -> list[tuple[float, float]]:
    """Training loss minus validation loss, before the second reading of a text of ``text`` tokens and in it.

    Returns:
        (mean, standard error) in nats for three stretches of one length: two before the second reading, and the second reading. If the text
        is read more than one and a half times, the first stretch has only what there is before the second one.
    """
    length = history.tokens.max() - text
    return differences(history, [(end - length, end) for end in (text - length, text, text + length)])


def readings(history: pd.DataFrame, text: int) -> list[tuple[float, float]]:
    """Training loss minus validation loss, (mean, standard error) in nats, over each reading of a text of ``text`` tokens."""
    return differences(history, [(start, start + text) for start in range(0, int(history.tokens.max()), text)])


def differences(history: pd.DataFrame, spans: list[tuple[int, int]]) -> list[tuple[float, float]]:
    """Training loss minus validation loss, (mean, standard error) in nats, over each span (after, up to) in tokens.

    The validation loss is interpolated linearly in tokens between evaluations.
    """
    evaluated = history.dropna(subset="validation_perplexity")
    above = history.train_loss - np.interp(history.tokens, evaluated.tokens, np.log(evaluated.validation_perplexity))
    parts = [above[(history.tokens > after) & (history.tokens <= end)] for after, end in spans]
    return [(part.mean(), part.sem()) for part in parts]


@command_line
def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = load_scale({"scale": parser.parse_args().scale, "seeds": [0]})
    text = read_meta(DATA / dataset_name(scale.data))["splits"]["train"]["tokens"]
    print(f"The text has {text:,} training tokens. Training loss minus validation loss, nats (standard error):")
    print("two stretches before and the second reading; where the text is read more than twice, each reading.")
    for name, run in sorted(read(archive_path(scale.name)).items()):
        if (tokens := run.record.get("tokens", 0)) > text:
            history = pd.read_csv(io.BytesIO(run.files["history.csv"]))
            kind = stretches if tokens <= 2 * text else readings
            found = kind(history, text)
            print(f"{name} ({kind.__name__})", *(f"{mean:+.4f} ({error:.4f})" for mean, error in found), sep="  ")
    return 0


if __name__ == "__main__":
    sys.exit(main())
