"""Faults in the handling of recorded runs: a stale or foreign recording that passes for a fresh one."""

from faults.fault import Fault

FAULTS = (
    Fault(
        name="stale-passes-for-fresh",
        what="A recorded run is restored although the training code has changed: the tables show what today's code would not train.",
        file="suite/records.py",
        old='if record.get("training_digest") == today:',
        new="if True:",
        caught_by=("tests/suite/recorded/test_restore.py::test_a_stale_run_is_not_restored_and_the_log_says_why",),
        rows=(),
    ),
    Fault(
        name="another-s-history",
        what="A record is taken in with the history of another run: curves and perplexities are not of one training.",
        file="suite/recorded/run.py",
        old="for file in FILES[1:]:",
        new="for file in FILES[2:]:",
        caught_by=("tests/suite/recorded/test_run.py::test_files_that_do_not_belong_together_are_refused",),
        rows=(),
    ),
)
