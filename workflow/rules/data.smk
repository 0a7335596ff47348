# Corpus and tokenized rows of the scale. C4 is tokenized by as many processes as there are threads; more of them:
# --set-threads data=64. Its train shards are no outputs, which Snakemake would remove before a retry: each has its own
# note, and a retry makes only those that are missing.
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
    """What the job of some runs reads. Finished runs wait for nothing: data that were removed, or are prepared again, train none of them again.

    An input that is ancient would not do for the others. Snakemake trains what lies behind a missing one, finished or not, and skips what
    lies behind one that is there and made again, missing or not. Finished runs keep it where it is there: Snakemake may train one again
    for reasons of its own, such as a kill between its record and Snakemake's.
    """
    dag, meta = workflow.dag_settings, str(rules.data.output.meta)  # ancient() would mark the output itself
    if dag.forceall or dag.forcetargets or dag.forcerun or not all(map(is_finished, names)):
        return [meta]
    return [ancient(meta)] if Path(meta).exists() else []
