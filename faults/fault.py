"""A fault: a small error in the code, its effect on a user, and the tests that should notice it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from poet.system.errors import UserError

#: Rows of Table 2 to train with a fault: POET where it can move their numbers, ONE where no number should move.
POET = ("poet-fs-1_2", "poet-bs-b256")
ONE = ("poet-fs-1_2",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One replacement in one file, after which the code still runs."""

    name: str  # short, unique
    what: str  # one sentence: what a user would suffer
    file: str  # path in the repository
    old: str  # the text that is replaced, which occurs exactly once in the file
    new: str  # what takes its place
    caught_by: tuple[str, ...]  # pytest node ids, at least one of which has to fail with the fault in place
    #: rows of Table 2 that are trained to see whether the check notices the fault; empty if such trainings never reach the line
    rows: tuple[str, ...] = POET

    def applied(self, text: str) -> str:
        """The file's text with the fault in it.

        Raises:
            UserError: the text to replace does not occur exactly once, because the file was changed: the fault must be updated.
        """
        if (found := text.count(self.old)) != 1:
            raise UserError(
                f"fault {self.name}: its text occurs {found} times in {self.file}, not once: change it in faults/"
            )
        return text.replace(self.old, self.new)

    @contextlib.contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Plant the fault, inside the block, in the copy of the repository at ``root``; raises as :meth:`applied` does."""
        path = root / self.file
        sound = path.read_text()
        path.write_text(self.applied(sound))
        try:
            yield
        finally:
            path.write_text(sound)
