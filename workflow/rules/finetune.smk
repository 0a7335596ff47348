# Finetuning of pretrained runs. Where runs of a pretrained model share a process, they are also made again together.
for folder, example in suite.task_folders.items():

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
            task=example.task,
            data=example.data,
            cache=DATA / "cache",
        script:
            "../scripts/task.py"


for number, names in enumerate(suite.finetuning_jobs()):
    first = suite.finetunings[names[0]]

    rule:
        name:
            f"finetune_{number}"
        input:
            base=RESULTS / "runs" / first.base / "record.json",
            tasks=[suite.task_folder(suite.finetunings[name]) / "meta.json" for name in names],
            rows=ancient(rules.data.output.meta),
        output:
            record=[RESULTS / "runs" / name / "record.json" for name in names],
        log:
            [RESULTS / "logs" / "runs" / f"{name}.log" for name in names],
        conda:
            "../../environment.yml"
        threads: suite.scale.resources(first.model)["threads"]
        resources:
            **suite.finetuning_resources(first.model),
        params:
            spec=[suite.finetunings[name].to_dict() for name in names],
            code=suite.finetuning_code(names),
            checkpoints=[str(RESULTS / "checkpoints" / name) for name in names],
        script:
            "../scripts/finetune.py"
