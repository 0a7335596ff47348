"""Finding jobs that Slurm would refuse before the first is submitted, and cancelling jobs that are left in its queue."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

from poet.launch.clock import duration
from poet.system.errors import UserError


def check_submission(workflow: Any) -> None:
    """Check that Slurm, if it is the executor, takes a job of each kind that is to run: submit one for tomorrow, and cancel it at once.

    ``--test-only`` would also refuse jobs that only have to wait for a node that is down. ``--hold`` would take jobs that no node can run.

    Raises:
        UserError: a job asks for an unknown partition, account or quality of service, for resources that no node has, or for more time
            than the partition gives; jobs of a killed pipeline of this folder are in the queue; or this machine has no Slurm.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    _check_queue()
    jobs = sorted((job for job in workflow.dag.needrun_jobs() if not job.is_local), key=lambda job: job.rule.name)
    for command, job in {_command(job, workflow.executor_settings): job for job in jobs}.items():
        done = subprocess.run(f"{command} --begin=now+1day --wrap=true", shell=True, capture_output=True, text=True)
        if done.returncode == 0:
            number = done.stdout.strip().partition(";")[0]
            limit = _partition_limit(number)
            subprocess.run(["scancel", number], check=False)  # the job may be gone already
            if job.resources.get("runtime", 0) <= limit:
                continue
            reason = f"its partition gives a job {limit:.0f} minutes, and Slurm would let this one wait for ever"
        else:
            reason = done.stderr.strip().rpartition(": ")[2]
        asked = {name: job.resources.get(name) for name in ("slurm_partition", "gpu", "nodes", "mem_mb", "runtime")}
        asked = ", ".join(f"{name}={value}" for name, value in {**asked, "threads": job.threads}.items() if value)
        raise UserError(
            f"Slurm refuses the jobs of rule {job.rule.name} ({asked}): {reason}; change resources in config/scales, or "
            "default-resources in workflow/profiles/slurm/config.yaml"
        )


def _check_queue() -> None:
    """Refuse to begin while Slurm has jobs of a killed pipeline of this folder: they would train again runs that were finished since."""
    try:
        asked = subprocess.run(["squeue", "--me", "--noheader", "--format=%i|%Z|%k"], capture_output=True, text=True)
    except FileNotFoundError:
        raise UserError("the slurm profile needs squeue, and this machine has none: call on a machine that submits to the cluster, or without --profile workflow/profiles/slurm") from None
    if asked.returncode:
        raise UserError(f"squeue does not say which jobs are left of an earlier pipeline ({asked.stderr.strip() or asked.returncode}): call again once it answers")
    jobs = [line.split("|", 2) for line in asked.stdout.splitlines() if line.count("|") >= 2]
    here = {str(Path.cwd()), os.environ.get("PWD")}
    if left := [number for number, folder, comment in jobs if folder in here and comment.startswith("rule_")]:
        raise UserError(
            f"{len(left)} jobs of a pipeline that was killed are in Slurm's queue: wait until they have ended, or scancel {' '.join(left)}; then call again"
        )


def _partition_limit(number: str) -> float:
    """The time limit, in minutes, of the partition of a queued job; infinite if it has none, or Slurm does not say."""
    partition = subprocess.run(["squeue", "--noheader", "--jobs", number, "--format=%P"], capture_output=True, text=True).stdout.strip()
    shown = subprocess.run(["scontrol", "--oneliner", "show", "partition", partition], capture_output=True, text=True).stdout
    return duration("".join(re.findall(r"\bMaxTime=(\S+)", shown))) / 60


def cancel_submitted(workflow: Any) -> None:
    """Cancel the jobs that a failed or interrupted call has left in Slurm's queue.

    Snakemake itself cancels them, unless Ctrl-C comes while it asks Slurm for the states of its jobs.
    """
    if workflow.executor_plugin.name == "slurm":
        subprocess.run(["scancel", "--name", workflow.scheduler._executor.run_uuid], check=False)


def _command(job: Any, settings: Any) -> str:
    """The executor's own sbatch call for a job, without the command that the job runs."""
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command
    from snakemake_executor_plugin_slurm.utils import set_gres_string

    given = {"-p": job.resources.get("slurm_partition"), "-A": job.resources.get("slurm_account")}
    partition, account = (f"{option} {value}" if value else "" for option, value in given.items())
    call = {"run_uuid": "check", "slurm_logfile": "/dev/null", "comment_str": "check", "workdir": None}
    return get_submit_command(job, {**call, "partition": partition, "account": account}, settings) + set_gres_string(job)
