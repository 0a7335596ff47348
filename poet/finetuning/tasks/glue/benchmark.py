"""What the eight tasks share."""

from poet.finetuning.tasks.contract import Task


class GlueTask(Task):
    """A task of GLUE. Its configuration on the hub has its name."""

    repository = "nyu-mll/glue"
    revision = "bcdcba79d07bc864c1c254ccfcedcce55bcc9a8c"  # so that the same examples come tomorrow
    metric = "accuracy"
    classes = 2
    target = "label"

    def __init_subclass__(cls) -> None:
        cls.configuration = cls.name
