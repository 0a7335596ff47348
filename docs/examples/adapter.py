"""Finetune without merges, and save the factors and the new head alone."""

import torch
from transformers import AutoModelForSequenceClassification

from poet import POETConfig, apply_poet
from poet.finetuning.adapter import base_digests, load_adapter, save_adapter
from poet.optim import poet_parameters


def finetune(pretrained, train, folder):
    model = AutoModelForSequenceClassification.from_pretrained(pretrained, dtype=torch.float32)  # R and P have its dtype
    base = base_digests(model)  # of the plain model
    apply_poet(model, POETConfig(block_size=64, init="keep"), exclude=("score",))
    train(model, [*poet_parameters(model), *model.score.parameters()])
    save_adapter(model, folder, base, also=("score",))


def load(pretrained, folder):
    return load_adapter(AutoModelForSequenceClassification.from_pretrained(pretrained, dtype=torch.float32), folder)
