"""``python -m poet.data '<description as JSON>' --folder F --cache C``: prepares a data set, checks a prepared one
(``--verify``), or says what it would cost (``--estimate``)."""

import argparse
import json
import os
import sys
from pathlib import Path

from humanfriendly import format_size

from poet.data.description import check_description
from poet.data.errors import DataError
from poet.data.estimate import estimate
from poet.data.prepare import prepare, verify
from poet.data.rate import measure
from poet.data.rows import read_meta
from poet.system.errors import UserError, command_line


@command_line
def main(arguments: list[str] | None = None) -> int:
    """Return the exit code. 0: done; 2: the user must put something right (one line says what); 130: interrupted."""
    parser = argparse.ArgumentParser(prog="python -m poet.data", description="Prepare a data set of token rows.")
    parser.add_argument("data", help='JSON, such as {"corpus": "enwik8", "tokenizer": {"kind": "bpe", ...}, ...}')
    parser.add_argument("--folder", type=Path, help="where the rows go, or lie")
    parser.add_argument("--cache", type=Path, help="where the corpus goes, shared between data sets")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), help="how many share the work (default: one a core)")
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--verify", action="store_true", help="read what is prepared and compare its checksums")
    instead.add_argument("--estimate", action="store_true", help="say what it would cost, timing a core on real text")
    given = parser.parse_args(arguments)
    needed = ["folder"] if given.verify else ["cache"] if given.estimate else ["folder", "cache"]
    if missing := [f"--{name}" for name in needed if getattr(given, name) is None]:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    if given.processes < 1:
        parser.error(f"--processes is 1 or more, not {given.processes}")
    try:
        data = json.loads(given.data)
    except json.JSONDecodeError as error:
        raise UserError(f"the description of the data is no JSON: {error}") from None
    if given.estimate:
        _print_estimate(data, given.cache)
    elif given.verify:
        if read_meta(given.folder)["data"] != check_description(data):
            raise DataError(f"{given.folder} holds other data than is described: give the description that it was prepared with")
        print(f"{verify(given.folder)} files of {given.folder} are as they were written")
    else:
        _print_meta(prepare(data, given.folder, given.cache, given.processes))
    return 0


def _print_meta(meta: dict) -> None:
    for split, part in meta["splits"].items():
        if "stream" in part:
            print(f"{split}: streamed, sha256 {part['sha256']} of {part['sha256_of']}")
        else:
            print(f"{split}: {part['rows']:,} rows, {part['tokens_without_padding']:,} tokens, sha256 {part['sha256']}")


def _print_estimate(data: dict, cache: Path) -> None:
    rate, measured = measure(data, cache)
    costs = estimate(data, rows_per_core_second=rate)
    print(f"rows of the train split: {costs.rows:,}")
    print(f"on disk when prepared: {format_size(costs.prepared_bytes)}")
    print(f"compressed text to read, and not kept: {format_size(costs.source_bytes)}")
    print(f"tokenizing: {costs.core_hours:,.3g} hours of one core, at {rate:,.0f} texts a second")
    print(f"timed here: {measured}")


if __name__ == "__main__":
    sys.exit(main())
