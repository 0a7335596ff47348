# One job per run. A rule per model, so that the longest runs start first and the cores stay busy to the end.


for rank, model in enumerate(suite.scale.models):

    rule:
        name:
            f"train_{model.replace('.', '_')}"
        input:
            data=rules.data.output,
            sources=training_sources(),
        output:
            record=RESULTS / "runs" / "{run}" / "record.json",
            history=RESULTS / "runs" / "{run}" / "history.csv",
        params:
            spec=lambda wildcards: suite.runs[wildcards.run].to_dict(),
            data=str(suite.dataset),
            checkpoints=str(RESULTS / "checkpoints" / "{run}"),
        wildcard_constraints:
            run="|".join(run for run, spec in suite.runs.items() if spec.model == model) or "none",
        log:
            RESULTS / "logs" / "runs" / "{run}.log",
        benchmark:
            RESULTS / "benchmarks" / "{run}.jsonl"
        threads: suite.scale.settings["resources"]["threads"]
        priority: rank
        resources:
            gpu=suite.scale.settings["resources"]["gpus"],
            mem_mb=suite.scale.settings["resources"]["mem_mb"],
            runtime=suite.scale.settings["resources"]["runtime"],
        conda:
            "../../environment.yml"
        script:
            "../scripts/train.py"
