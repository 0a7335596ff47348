"""What a record calls uncommitted changes."""

import subprocess

import pytest

from poet.launch import provenance


@pytest.mark.parametrize(
    ("path", "dirty"), [("poet/core.py", True), ("poet/new.py", True), ("config/scales/paper.yaml", False), ("workflow/profiles/slurm/config.yaml", False)]
)
def test_a_site_s_settings_are_no_change(tmp_path, monkeypatch, path, dirty):
    for known in ("poet/core.py", "config/scales/paper.yaml", "workflow/profiles/slurm/config.yaml"):
        (tmp_path / known).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / known).write_text("a\n")
    for command in (["init", "--quiet"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a", "commit", "--quiet", "--message=a"]):
        subprocess.run(["git", "-C", tmp_path, *command], check=True)
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.provenance("cpu")["dirty"] is False
    (tmp_path / path).write_text("b\n")
    assert provenance.provenance("cpu")["dirty"] is dirty
