"""Rules of artifacts: build one artifact from the records."""

from pathlib import Path

from job import job

with job(snakemake):
    from suite.context import Context
    from suite.recorded.marking import build_artifact
    from suite.scale import load_scale
    from suite.sources import artifact_files, note_path, write_note

    # Only this artifact is imported: importing all of them takes longer than building one.
    scale = load_scale({"scale": snakemake.params.scale, "seeds": snakemake.params.seeds})
    results, name = Path(snakemake.params.results), snakemake.params.artifact
    build_artifact(name, Context(scale, results / scale.name, home=results))
    note = note_path(results / scale.name, name)
    write_note(note, artifact_files(name), map(Path, snakemake.output), seeds=list(scale.seeds), specs=list(snakemake.params.digests))
