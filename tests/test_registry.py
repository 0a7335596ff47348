"""What a file joins by lying in a folder: methods, corpora and tasks are found so."""

import importlib
import sys

import pytest

from poet.system.registry import discover

FILE = "from library.shelf.shared import SimpleNamespace\nTHING = SimpleNamespace(name={name!r})\n"


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The folder of a package that nothing else knows."""
    folder = tmp_path / "library" / "shelf"
    folder.mkdir(parents=True)
    (folder / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("library.shelf")
    yield folder
    for module in [name for name in sys.modules if name.partition(".")[0] == "library"]:
        del sys.modules[module]


def test_a_file_joins_by_lying_there_and_a_second_of_a_name_is_refused(shelf):
    for file, text in (("shared", "from types import SimpleNamespace\n"), ("two", FILE.format(name="second")), ("one", FILE.format(name="first"))):
        (shelf / f"{file}.py").write_text(text)
    found = discover("library.shelf", "THING")
    assert list(found) == ["first", "second"] and found["first"] is sys.modules["library.shelf.one"].THING
    (shelf / "zz_twice.py").write_text(FILE.format(name="second"))
    importlib.invalidate_caches()  # which go by the second in some file systems
    with pytest.raises(ImportError, match="library/shelf/two.py and library/shelf/zz_twice.py both define a thing named 'second'"):
        discover("library.shelf", "THING")


def test_an_entry_without_a_name_is_refused(shelf):
    (shelf / "nameless.py").write_text("THING = object()\n")
    with pytest.raises(ImportError, match="library/shelf/nameless.py: THING has no `name`"):
        discover("library.shelf", "THING")
