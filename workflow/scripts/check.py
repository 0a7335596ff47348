"""Rule ``check``: compare results with the recorded numbers, on the terminal and in ``results/<scale>/check.csv``."""

import sys
from pathlib import Path

from job import job

with job(snakemake):
    from poet.system.files import write_text
    from suite.check.compare import compare, recorded_folder
    from suite.check.report import failed, report, summary, to_csv
    from suite.pipeline import note_error

    results, recorded = Path(snakemake.params.results), recorded_folder(snakemake.params.scale)
    found = compare(recorded, results, snakemake.params.tables)
    write_text(results / "check.csv", to_csv(found))
    print(report(found), file=sys.__stdout__, flush=True)
    for table in snakemake.params.left_out:
        said = f"note: {results / table} is of other seeds or rates than those of today: it is not compared"
        print(said, file=sys.__stdout__, flush=True)
    empty = not any(one.kind == "number" for one in found)
    if empty:
        note_error(f"no number of {results} is recorded in {recorded}: nothing was compared")
    if failed(found):
        note_error(f"{summary(found)[-1].rstrip('.')}: {results / 'check.csv'} has every number")
    print(summary(found)[-1])  # into the log, which Snakemake shows if the rule fails
sys.exit(1 if empty or failed(found) else 0)
