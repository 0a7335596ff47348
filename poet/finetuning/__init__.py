"""Finetuning: tasks, and models that were pretrained before."""
