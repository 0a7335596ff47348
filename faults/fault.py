"""A fault: a small slip in the method, what it would cost a user, and what should notice it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from poet.system.errors import UserError

#: Rows of Table 2 whose numbers a fault in the method can move, and the one that is trained where none should move.
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
    caught_by: tuple[str, ...]  # pytest node ids, one of which has to fail with the fault in place
    #: rows of Table 2 that are trained with it to see whether the check notices it; none where no CPU executes the line
    rows: tuple[str, ...] = POET

    def applied(self, text: str) -> str:
        """The file's text with the fault in it.

        Raises:
            UserError: the text that it replaces is not there exactly once: the file has changed, the fault has to follow.
        """
        if (found := text.count(self.old)) != 1:
            raise UserError(
                f"fault {self.name}: its text occurs {found} times in {self.file}, not once: change it in faults/"
            )
        return text.replace(self.old, self.new)

    @contextlib.contextmanager
    def planted(self, root: Path) -> Iterator[None]:
        """Has the fault in the copy of the repository at ``root`` inside the block; raises as :meth:`applied` does."""
        path = root / self.file
        sound = path.read_text()
        path.write_text(self.applied(sound))
        try:
            yield
        finally:
            path.write_text(sound)
