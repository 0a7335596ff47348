# Corpus and tokenized rows of the scale. C4 is tokenized by one process for each thread; for more of them use
# --set-threads data=64. Its train shards are not outputs, since Snakemake deletes outputs before a retry. Each has its own
# note, and a retry makes only the missing ones.
from poet.data.description import row_files
from suite.jobs import finished

data_threads = max(2, suite.scale.settings.resources.threads)


rule data:
    output:
        meta=suite.dataset / "meta.json",
        rows=[suite.dataset / name for name in row_files(suite.scale.data)],
    log:
        RESULTS / "logs" / "data" / f"{suite.dataset.name}.log",
    conda:
        "../../environment.yml"
    threads: data_threads
    resources:
        mem_mb=lambda wildcards, threads: 1000 + 500 * threads,
        runtime=suite.scale.settings.resources.runtime,
    params:
        data=suite.scale.data,
        cache=DATA / "cache",
        sources=data_digest(suite.scale.data["corpus"]),
        text=suite.text,
    script:
        "../scripts/data.py"


is_finished = finished(suite)


def rows_for(names):
    """The prepared data as input of the job of some runs. Removing or preparing the data again must not train finished runs again.

    Finished runs have the data as ``ancient`` input if they exist, and otherwise no input: behind a missing ancient input Snakemake trains
    finished runs, too. They still need the data, because Snakemake may train one again, such as after a kill between its record and
    Snakemake's. Unfinished runs have the plain input: behind an ancient one that is made again, Snakemake skips even missing runs.
    """
    meta = str(rules.data.output.meta)  # a copy: ancient() would mark the output itself
    if forced() or not all(map(is_finished, names)):
        return [meta]
    return [ancient(meta)] if Path(meta).exists() else []
