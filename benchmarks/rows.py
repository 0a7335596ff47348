"""The lines of the benchmark table: columns, device and versions, CSV."""

import csv
import functools
import io
import sys
from collections.abc import Iterable
from typing import Any

import torch

from poet.launch.provenance import provenance

#: The columns that identify a line.
NAMES = ("operation", "shape", "tokens", "dtype", "variant")
#: Column descriptions, in the order of the file. A cell without a value is empty.
COLUMNS = {
    "operation": "layer, step, or a kernel",
    "shape": "inputs x outputs, batch of blocks, or model with its feed-forward width",
    "tokens": "of one call",
    "dtype": "of weights and activations; a bf16 step is autocast over fp32",
    "variant": "the method's row; linear and adamw are the plain ones",
    "device": "name",
    "threads": "of torch; empty on a GPU",
    "torch": "version",
    "triton": "version",
    "python": "version",
    "commit": "of this repository, + if files differ from it",
    "rounds": "how often it was timed; 0: left out, see note",
    "median_s": "seconds of a call, its share of what is due now and then included",
    "p20_s": "20th percentile",
    "p80_s": "80th percentile",
    "flops": "operations of the matrix products, counted on shapes alone",
    "ratio": "to the plain case, median over rounds of neighbouring times; the plain case's to itself is noise",
    "ratio_p20": "20th percentile",
    "ratio_p80": "80th percentile",
    "predicted_ratio": "of the operations that are really carried out",
    "held_bytes": "held between calls: weights, optimizer state, inputs",
    "peak_bytes": "held_bytes and the most that is allocated besides during a call",
    "relative_error": "of a kernel's result to fp64",
    "note": "why it was left out",
}


@functools.cache
def environment(device: str) -> dict[str, Any]:
    """The cells of device and versions, which every line has, found out once."""
    found = provenance(device)
    versions = found["versions"]
    commit = found["commit"][:9] + ("+" if found["dirty"] else "") if found["commit"] else None
    return {
        "device": torch.cuda.get_device_name() if device == "cuda" else found["machine"]["cpu"],
        "threads": None,
        "torch": torch.__version__,
        "triton": versions["triton"] or getattr(sys.modules.get("triton"), "__version__", None),
        "python": versions["python"],
        "commit": commit,
    }


def as_csv(rows: Iterable[dict[str, Any]]) -> str:
    """The table as CSV, in full precision; None and NaN are empty cells."""
    text = io.StringIO()  # no pandas: make bench-gpu must work without it
    writer = csv.DictWriter(text, COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: "" if v is None or v != v else v for k, v in row.items()} for row in rows)
    return text.getvalue()
