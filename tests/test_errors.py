"""How a command line ends."""

import subprocess
import sys

import pytest

from poet.system.errors import UserError, command_line

LISTING = """
import sys, types
poet = types.ModuleType("poet")  # the package itself imports torch
poet.__path__ = ["poet"]
sys.modules["poet"] = poet
from poet.system.errors import command_line
@command_line
def main():
    for number in range({lines}):
        print(number, flush={flush})
    return 0
sys.exit(main())
"""


@pytest.mark.parametrize(("lines", "flush"), [(100_000, False), (100_000, True), (10, False)])
def test_a_reader_that_has_had_enough_gets_no_traceback(repository, lines, flush):
    """``| head``, which may close the pipe while lines are printed or before the last are written."""
    code = LISTING.format(lines=lines, flush=flush)
    process = subprocess.Popen([sys.executable, "-c", code], cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert (process.stderr.read(), process.wait(60)) == (b"", 141)


def test_another_pipe_that_broke_is_a_fault():
    @command_line
    def main():
        raise BrokenPipeError("of a job")

    with pytest.raises(BrokenPipeError, match="of a job"):
        main()


def test_a_user_s_error_is_the_last_line(capsys):
    @command_line
    def main():
        print("so far")
        raise UserError("a.csv is empty: remove it")

    assert main() == 2
    assert capsys.readouterr().err == "error: a.csv is empty: remove it\n"


def test_ctrl_c_is_a_sentence(capsys):
    @command_line
    def main():
        raise KeyboardInterrupt

    assert main() == 130
    assert capsys.readouterr().err.startswith("interrupted: what is complete stays")
