"""`python -m poet.data '<description as JSON>' --folder F --cache C`: prepares a data set."""

import argparse
import json
import sys
from pathlib import Path

from poet.data.errors import DataError
from poet.errors import UserError
from poet.data.prepare import prepare


def main(arguments: list[str] | None = None) -> int:
    """0: the folder is complete; 2: the user must put something right (one line says what); 130:
    interrupted."""
    parser = argparse.ArgumentParser(
        prog="python -m poet.data", description="Prepare a data set of token rows."
    )
    parser.add_argument(
        "data", help='JSON, such as {"corpus": "enwik8", "tokenizer": {"kind": "bpe", ...}, ...}'
    )
    parser.add_argument("--folder", type=Path, required=True, help="where the rows go")
    parser.add_argument(
        "--cache", type=Path, required=True, help="where the corpus goes, shared between data sets"
    )
    given = parser.parse_args(arguments)
    try:
        meta = prepare(_parse(given.data), given.folder, given.cache)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: run again to go on from the last complete stage", file=sys.stderr)
        return 130
    for split, part in meta["splits"].items():
        print(
            f"{split}: {part['rows']:,} rows, {part['tokens_without_padding']:,} tokens, "
            f"sha256 {part['sha256']}"
        )
    return 0


def _parse(text: str) -> dict:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise DataError(f"the description of the data is no JSON: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
