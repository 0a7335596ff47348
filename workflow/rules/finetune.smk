from suite.summarization import base_of


# Finetuning of pretrained runs. Runs of a pretrained model that share a job are also made again together.
for folder, (task, data) in suite.task_folders.items():

    rule:
        name:
            f"task_{Path(folder).name.replace('-', '_')}"
        output:
            [Path(folder) / name for name in ("meta.json", "train.jsonl", "validation.jsonl")],
        log:
            RESULTS / "logs" / "data" / f"{Path(folder).name}.log",
        conda:
            "../../environment.yml"
        resources:
            mem_mb=4000,
            runtime=120,
        params:
            task=task,
            data=data,
            cache=DATA / "cache",
            code=suite.task_code(),
        script:
            "../scripts/task.py"


if source := suite.scale.settings.summarization.base:

    rule bart:
        output:
            RESULTS / "runs" / base_of(suite.scale)[0] / "record.json",
        log:
            RESULTS / "logs" / suite.scale.name / "bart.log",
        conda:
            "../../environment.yml"
        resources:
            mem_mb=8000,
            runtime=120,
        params:
            source=source,
        script:
            "../scripts/bart.py"


for number, names in enumerate(suite.finetuning_jobs()):
    first = suite.finetunings[names[0]]

    rule:
        name:
            f"finetune_{number}"
        input:
            base=[RESULTS / "runs" / first.base / "record.json"] if first.base else [],
            tasks=[suite.examples(suite.finetunings[name]) / "meta.json" for name in names] if first.base else lambda wildcards, names=names: rows_for(names) * len(names),
            rows=[] if suite.given_bart(first) else lambda wildcards, names=names: rows_for(names),
        output:
            record=[RESULTS / "runs" / name / "record.json" for name in names],
        log:
            [RESULTS / "logs" / "runs" / f"{name}.log" for name in names],
        conda:
            "../../environment.yml"
        threads: suite.finetuning_threads(first.model)
        resources:
            **suite.finetuning_resources(first.model),
        params:
            spec=[suite.finetunings[name].to_dict() for name in names],
            code=suite.finetuning_code(names),
            checkpoints=[str(RESULTS / "checkpoints" / name) for name in names],
        script:
            "../scripts/finetune.py"


# Searches for learning rates, made only if asked for by name. `make record` keeps their table where the scale reads it.
for base, task in suite.finetuning_searches():

    rule:
        name:
            f"finetuning_rates_{task}_{base.variant.replace('-', '_')}"
        input:
            base=RESULTS / "runs" / base.name / "record.json",
            task=suite.searched_task(task) / "meta.json",
            rows=ancient(str(rules.data.output.meta)) if suite.tuned_part(base, task).exists() else rules.data.output.meta,
        output:
            suite.tuned_part(base, task),
        log:
            RESULTS / "logs" / suite.scale.name / "finetuning_rates" / f"{task}-{base.variant}.log",
        conda:
            "../../environment.yml"
        threads: suite.finetuning_threads(base.model)
        resources:
            **suite.finetuning_resources(base.model),
        params:
            scale=suite.scale.name,
            seeds=list(suite.scale.seeds),
            base=base.name,
            task=task,
            code=suite.finetuning_code(name for name, spec in suite.finetunings.items() if spec.task == task),
        script:
            "../scripts/finetuning_rates.py"


rule finetuning_rates:
    localrule: True
    retries: 0  # the profile's are for jobs of a cluster
    input:
        [suite.tuned_part(base, task) for base, task in suite.finetuning_searches()],
    output:
        suite.folder / "finetuning_rates.csv",
    log:
        RESULTS / "logs" / suite.scale.name / "finetuning_rates.log",
    params:
        parts=[f"{task} {base.name}" for base, task in suite.finetuning_searches()],
    shell:
        "awk 'FNR > 1 || NR == 1' {input} > {output} 2> {log}"
