"""The support matrix: models, what is done with each, and what its test shows. ``docs/support.md`` is written from it."""

#: Models, each of one or two tiny blocks, and what is special about them.
MODELS = {
    "LLaMA": "its head, `lm_head`, is left alone by default",
    "GPT-2": "its `Conv1D` layers are replaced by `nn.Linear` first (below)",
    "BERT": "its decoder, tied to the embedding, is left alone and stays tied",
    "T5": "encoder and decoder; its head is tied to the embedding",
    "CNN": "convolutions are left alone, linear layers are wrapped",
}
#: What is done with a model, and what the test of it asks for.
FEATURES = {
    "compile": "`torch.compile`: loss and gradients are those of the eager model, also after a merge. The one step that was tried on a GPU became slower ([speed](speed.md#on-a-gpu))",
    "autocast": "bf16: gradients are fp32 and near those of full precision",
    "checkpointing": "activations computed again in backward: the same gradients",
    "deepcopy": "the copy has the same gradients, and trains alone",
    "pickle": "`torch.save` of the whole model: as for a copy",
    "DDP": "two processes with merges end with the weights of one process",
    "FSDP2": "`fully_shard`, two processes with merges: the same; the state dict is gathered, and loaded again",
    "Trainer": "Hugging Face's, with `MergeCallback`: stopped, resumed, and the same weights bit for bit",
    "export": "`export_dense`: plain layers, the same loss",
    "LBFGS": "refused in a sentence",
}
#: Features that are refused for every model, with the words that the refusal begins with.
REFUSED = {"LBFGS": "LBFGS keeps one history of all parameters"}


def table() -> str:
    """The matrix as Markdown. A cell is a test of its own (``tests/support/test_support.py``), so each is green."""
    lines = ["| | " + " | ".join(FEATURES) + " |", "| --- |" + " :---: |" * len(FEATURES)]
    lines += [f"| {model} | " + " | ".join("refused" if f in REFUSED else "yes" for f in FEATURES) + " |" for model in MODELS]
    lines += ["", *(f"- **{model}**: {what}." for model, what in MODELS.items())]
    lines += ["", *(f"- **{feature}**: {what}." for feature, what in FEATURES.items())]
    return "\n".join(lines)
