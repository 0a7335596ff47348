"""Folders that one process at a time writes to."""

from poet.data.files import exclusive


def test_what_a_killed_process_left_is_removed_and_nothing_else(tmp_path):
    (tmp_path / ".a.1.part").write_text("half a file")
    (tmp_path / ".download-x.part" / "inner").mkdir(parents=True)
    (tmp_path / "kept").write_text("whole")
    with exclusive(tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", "kept"]
