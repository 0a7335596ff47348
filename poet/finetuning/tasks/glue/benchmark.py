"""The base class of the eight tasks."""

from poet.finetuning.tasks.contract import Task


class GlueTask(Task):
    """A task of GLUE. Its configuration on the hub has its name."""

    repository = "nyu-mll/glue"
    revision = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"  # a fixed commit, so that the examples stay the same
    metric = "accuracy"
    classes = 2
    target = "label"

    def __init_subclass__(cls) -> None:
        cls.configuration = cls.name
