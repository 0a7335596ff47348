"""Finetuning: tasks and summaries for models that were pretrained, and how they are scored."""
