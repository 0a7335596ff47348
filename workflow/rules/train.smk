# One job per run. A rule per model, so that the longest runs start first and the cores stay busy to the end.


for rank, model in enumerate(suite.scale.models):

    rule:
        name:
            f"train_{model.replace('.', '_')}"
        input:
            rules.data.output.meta,
        output:
            record=RESULTS / "runs" / "{run}" / "record.json",
            history=RESULTS / "runs" / "{run}" / "history.csv",
        log:
            RESULTS / "logs" / "runs" / "{run}.log",
        benchmark:
            RESULTS / "benchmarks" / "{run}.jsonl"
        wildcard_constraints:
            run=suite.pattern(model),
        priority: rank
        conda:
            "../../environment.yml"
        threads: suite.scale.settings["resources"]["threads"]
        resources:
            gpu=suite.scale.settings["resources"]["gpus"],
            mem_mb=suite.scale.settings["resources"]["mem_mb"],
            runtime=suite.scale.settings["resources"]["runtime"],
        params:
            spec=lambda wildcards: suite.runs[wildcards.run].to_dict(),
            sources=lambda wildcards: training_sources(
                suite.runs[wildcards.run].method
            ),
            checkpoints=str(RESULTS / "checkpoints" / "{run}"),
        script:
            "../scripts/train.py"
