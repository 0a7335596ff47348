"""POET, OFT, LoRA and full training as finetuning methods: Tables 4 and 12, and what is kept of a finetuned model."""
