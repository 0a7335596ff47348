"""What Slurm would refuse, asked before the first job is submitted; and what is left in its queue at the end."""

from __future__ import annotations

import subprocess
from typing import Any

from poet.system.errors import UserError


def check_submission(workflow: Any) -> None:
    """Ask Slurm whether it takes a job of each kind that is to run: submitted for tomorrow, and cancelled at once.

    ``--test-only`` also refuses what has to wait for a node that is down, and ``--hold`` takes what no node has.

    Args:
        workflow: Snakemake's, with its DAG built; nothing is asked unless its executor is Slurm's.

    Raises:
        UserError: a partition, account or quality of service that there is not, or resources that no node has.
    """
    if workflow.executor_plugin.name != "slurm":
        return
    jobs = sorted((job for job in workflow.dag.needrun_jobs() if not job.is_local), key=lambda job: job.rule.name)
    for command, job in {_command(job, workflow.executor_settings): job for job in jobs}.items():
        done = subprocess.run(f"{command} --begin=now+1day --wrap=true", shell=True, capture_output=True, text=True)
        if done.returncode == 0:
            subprocess.run(["scancel", done.stdout.strip().partition(";")[0]], check=False)  # it may be gone already
            continue
        reason = done.stderr.strip().rpartition(": ")[2]
        asked = {name: job.resources.get(name) for name in ("slurm_partition", "gpu", "nodes", "mem_mb", "runtime")}
        asked = ", ".join(f"{name}={value}" for name, value in {**asked, "threads": job.threads}.items() if value)
        raise UserError(
            f"Slurm refuses the jobs of rule {job.rule.name} ({asked}): {reason}; change resources in config/scales, or "
            "default-resources in workflow/profiles/slurm/config.yaml"
        )


def cancel_submitted(workflow: Any) -> None:
    """Cancel what a call that failed or was interrupted has left in Slurm's queue.

    Snakemake does so itself, unless Ctrl-C comes while it asks Slurm for the states of its jobs: then it cancels none.
    """
    if workflow.executor_plugin.name == "slurm":
        subprocess.run(["scancel", "--name", workflow.scheduler._executor.run_uuid], check=False)


def _command(job: Any, settings: Any) -> str:
    """The executor's own sbatch call for a job, without what it runs."""
    from snakemake_executor_plugin_slurm.submit_string import get_submit_command
    from snakemake_executor_plugin_slurm.utils import set_gres_string

    given = {"-p": job.resources.get("slurm_partition"), "-A": job.resources.get("slurm_account")}
    partition, account = (f"{option} {value}" if value else "" for option, value in given.items())
    call = {"run_uuid": "check", "slurm_logfile": "/dev/null", "comment_str": "check", "workdir": None}
    return get_submit_command(job, {**call, "partition": partition, "account": account}, settings) + set_gres_string(job)
