# One job for each run, or for several runs if the scale says that they share one. Each model has its own rules and priority,
# so that the longest runs start first and the cores stay busy to the end.

for rank, model in enumerate(suite.scale.models):
    for number, names in enumerate(suite.shared_jobs(model)):

        rule:
            name:
                f"train_{model.replace('.', '_')}_{number}"
            input:
                lambda wildcards, names=names: rows_for(names),
            output:
                record=[RESULTS / "runs" / name / "record.json" for name in names],
                history=[RESULTS / "runs" / name / "history.csv" for name in names],
            log:
                [RESULTS / "logs" / "runs" / f"{name}.log" for name in names],
            priority: rank
            conda:
                "../../environment.yml"
            threads: suite.scale.resources(model)["threads"]
            resources:
                **suite.resources(model),
            params:
                spec=[suite.runs[name].to_dict() for name in names],
                code=suite.training_code(names),
                checkpoints=[str(RESULTS / "checkpoints" / name) for name in names],
            script:
                "../scripts/train.py"

    rule:
        name:
            f"train_{model.replace('.', '_')}"
        input:
            lambda wildcards: rows_for([wildcards.run]),
        output:
            record=RESULTS / "runs" / "{run}" / "record.json",
            history=RESULTS / "runs" / "{run}" / "history.csv",
        log:
            RESULTS / "logs" / "runs" / "{run}.log",
        wildcard_constraints:
            run=suite.pattern(model),
        priority: rank
        conda:
            "../../environment.yml"
        threads: suite.scale.resources(model)["threads"]
        resources:
            **suite.resources(model),
        params:
            spec=lambda wildcards: suite.trainable[wildcards.run].to_dict(),
            code=lambda wildcards: suite.training_code([wildcards.run]),
            checkpoints=str(RESULTS / "checkpoints" / "{run}"),
        script:
            "../scripts/train.py"
