"""Rule ``bart``: the pretrained BART of the hub, or of a local folder."""

import json
from pathlib import Path

from job import job

with job(snakemake):
    from poet.finetuning.problems.bart import fetch_bart
    from poet.launch.records import weights_files, write_record
    from suite.summarization import check_base

    check_base(snakemake.params.source)
    record = Path(snakemake.output[0])
    fetch_bart(snakemake.params.source, record.parent)
    write_record(record, json.loads(record.read_text()) | {"weights_files": weights_files(record.parent / "weights")})
