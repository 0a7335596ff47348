"""A fault: a small error in the code, its effect on a user, and the test that should notice it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from poet.system.errors import UserError
from poet.system.validation import parse, read_yaml

FILE = "faults/catalogue.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One replacement in one file. The catalogue says at its top what the fields are."""

    name: str
    what: str
    file: str
    old: str
    new: str
    caught_by: str
    rows: tuple[str, ...] = ("poet-fs-1_2", "poet-bs-b256")

    def applied(self, text: str) -> str:
        """The file's text with the fault in it.

        Raises:
            UserError: the text to replace does not occur exactly once, because the file was changed: the fault must be updated.
        """
        if (found := text.count(self.old)) != 1:
            raise UserError(
                f"fault {self.name}: its text occurs {found} times in {self.file}, not once: change it in {FILE}"
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


_catalogue = read_yaml(Path(__file__).with_name("catalogue.yaml"), FILE)
#: All faults, in the order of the catalogue.
FAULTS = tuple(parse(Fault, fault | {"name": name}, f"{FILE}: {name}") for name, fault in _catalogue.items())
