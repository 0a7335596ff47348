# Corpus and tokenized rows of the scale.


rule data:
    input:
        data_sources(),
    output:
        meta=suite.dataset / "meta.json",
        rows=[suite.dataset / f"{split}.npy" for split in ("train", "validation")],
    params:
        data=suite.scale.data,
        cache=DATA / "cache",
    log:
        RESULTS / "logs" / "data" / f"{suite.dataset.name}.log",
    threads: 2
    resources:
        mem_mb=2000,
    conda:
        "../../environment.yml"
    script:
        "../scripts/data.py"
