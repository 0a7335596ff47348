# Corpus and tokenized rows of the scale.


rule data:
    output:
        meta=suite.dataset / "meta.json",
        rows=[suite.dataset / f"{split}.npy" for split in ("train", "validation")],
    log:
        RESULTS / "logs" / "data" / f"{suite.dataset.name}.log",
    conda:
        "../../environment.yml"
    threads: 2
    resources:
        mem_mb=2000,
    params:
        data=suite.scale.data,
        cache=DATA / "cache",
        sources=data_sources(),
    script:
        "../scripts/data.py"
