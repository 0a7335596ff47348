"""What a second reading of the text changes: ``python tools/rereading.py night``, with the scale's data prepared.

For every recorded run that reads the text more than once and at most twice, prints training loss minus validation loss in nats: over the
second reading, and over the two stretches of the same length before it. If a model learns rows by heart, this difference falls
further at the second reading than between the two stretches before.
"""

import argparse
import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from poet.data.rows import read_meta
from suite.collection import DATA
from suite.recorded.archive import archive_path, read
from suite.scale import dataset_name, load_scale


def stretches(history: pd.DataFrame, text: int) -> list[tuple[float, float]]:
    """Training loss minus validation loss, before the second reading and in it.

    Args:
        history: history of a run that reads the text once, and all or a part of it again.
        text: number of tokens of the text.

    Returns:
        (mean, standard error) in nats for three stretches of one length: two before the second reading, and the second reading.
        The validation loss is interpolated linearly in tokens between evaluations.
    """
    evaluated = history.dropna(subset="validation_perplexity")
    above = history.train_loss - np.interp(history.tokens, evaluated.tokens, np.log(evaluated.validation_perplexity))
    length = history.tokens.max() - text
    parts = [above[(history.tokens > end - length) & (history.tokens <= end)] for end in (text - length, text, text + length)]
    return [(part.mean(), part.sem()) for part in parts]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scale")
    scale = load_scale({"scale": parser.parse_args().scale, "seeds": [0]})
    text = read_meta(DATA / dataset_name(scale.data))["splits"]["train"]["tokens"]
    print(f"The text has {text:,} training tokens. Training loss above validation loss, nats (standard error): two stretches before, second reading.")
    for name, run in sorted(read(archive_path(scale.name)).items()):
        if text < run.record.get("tokens", 0) <= 2 * text:
            history = pd.read_csv(io.BytesIO(run.files["history.csv"]))
            print(name, *(f"{mean:+.4f} ({error:.4f})" for mean, error in stretches(history, text)), sep="  ")


if __name__ == "__main__":
    main()
