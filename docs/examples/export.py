"""Finetune with merges, and save the whole model for plain transformers."""

import torch
from transformers import AutoModelForSequenceClassification

from poet import MergeSchedule, POETConfig, apply_poet, export_dense, parameter_groups


def finetune(pretrained, train, folder):
    model = AutoModelForSequenceClassification.from_pretrained(pretrained, dtype=torch.float32)  # R and P have its dtype
    config = POETConfig(block_size=64, merge_every=400, init="keep")
    apply_poet(model, config, exclude=("score",))
    optimizer = torch.optim.AdamW(parameter_groups(model, lr=2e-5, poet_lr=2e-5))
    train(model, optimizer, MergeSchedule(model, config, optimizer))  # calls after_step(step) of the schedule at each step
    export_dense(model).save_pretrained(folder)


def load(folder):
    return AutoModelForSequenceClassification.from_pretrained(folder)
