"""Finetuning pretrained models with POET: what is trained on, and what is kept of it."""
