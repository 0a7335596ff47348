"""Starting a run: in this process, or in several processes that ``torchrun`` starts on this machine or on the nodes of a Slurm job."""

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import TextIO

from poet.launch.sources import ROOT
from poet.system.files import write_text
from poet.training.errors import RunError
from poet.training.spec import RunSpec
from poet.launch.status import tell

#: Seconds that the training processes have to save and end after a signal to this process, before they are killed.
SECONDS_TO_SAVE = 600


def launch(
    spec: RunSpec,
    *,
    data: Path,
    folder: Path,
    checkpoints: Path,
    device: str,
    threads: int,
    processes: int,
    nodes: int = 1,
    shard_optimizer: bool = False,
) -> None:
    """Train a run as :func:`poet.launch.loop.train` does, with its micro-batches divided among processes.

    Args:
        spec, data, folder, checkpoints, device, shard_optimizer: see ``train``.
        threads: CPU threads of the run on a node.
        processes: number of processes over all nodes; each has its own GPU if the device is "cuda".
        nodes: number of nodes; more than one only in a Slurm job.

    Raises:
        RunError: as ``train``, from any of the processes; the processes do not divide evenly among the nodes; several nodes
            are asked for outside of a Slurm job; a process was lost.
        DiskError: as ``train``; with several processes it is a RunError.
        SystemExit: SIGINT or SIGTERM came; the state is saved and the next call goes on from it.
    """
    if processes % nodes:
        raise RunError(f"run {spec.name}: {nodes} nodes cannot share {processes} processes evenly (resources: gpus, nodes)")
    if nodes > 1 and "SLURM_JOB_ID" not in os.environ:
        raise RunError(f"run {spec.name} wants {nodes} nodes, and this is no Slurm job: use the Slurm profile, or nodes: 1")
    options = {"device": device, "threads": max(1, threads * nodes // processes), "shard_optimizer": shard_optimizer}
    if processes == 1:
        from poet.launch.loop import train

        train(spec, data=data, folder=folder, checkpoints=checkpoints, **options)
        return
    paths = {"data": data, "folder": folder, "checkpoints": checkpoints}
    # In the checkpoint folder, which every node sees.
    job = Path(checkpoints).absolute() / f"job-{socket.gethostname()}-{os.getpid()}.json"
    write_text(job, json.dumps({"spec": spec.to_dict(), **{k: str(Path(p).absolute()) for k, p in paths.items()}, **options}))
    end_of(job).unlink(missing_ok=True)  # of an earlier process with the same number
    try:
        code, stopped = _run(_command(job, processes // nodes, nodes, threads), options["threads"])
        end = json.loads(end_of(job).read_text(encoding="utf-8")) if code and end_of(job).exists() else {}
    finally:
        for file in (job, end_of(job)):
            file.unlink(missing_ok=True)
    if "error" in end:
        tell(Path(checkpoints), end["error"])
        raise RunError(end["error"])
    if "code" in end:
        raise SystemExit(end["code"])
    if code and stopped:  # by the signal itself, such as before they could catch it: their last checkpoint stays
        raise SystemExit(128 + stopped)
    if code:
        raise RunError(
            f"the processes of run {spec.name} ended without a word (exit code {code}; its log has what they printed): start "
            "again, and it goes on from its last checkpoint"
        )


def end_of(job: Path) -> Path:
    """The JSON file in which the first process that ends early says why: ``error``, a sentence, or ``code``, the exit code after a signal."""
    return job.with_suffix(".end")


def _command(job: Path, processes: int, nodes: int, threads: int) -> list[str]:
    """``torchrun`` with ``processes`` on each node; under ``srun`` where there are several nodes."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={processes}"]
    torchrun += [f"--shutdown-timeout={SECONDS_TO_SAVE}", "--signals-to-handle=SIGUSR1"]
    places = ""
    if nodes == 1:
        torchrun += ["--standalone"]
    else:
        with socket.socket() as free:  # a free port of this node, which is the first
            free.bind(("", 0))
            port = free.getsockname()[1]
        torchrun += [f"--nnodes={nodes}", f"--master-port={port}"]
        places = "--node-rank=$SLURM_NODEID --master-addr=$SLURM_LAUNCH_NODE_IPADDR"
    script = f"{shlex.join(torchrun)} {places} -m poet.launch {shlex.quote(str(job))}"
    # A cluster sends SIGTERM to every process of a job. Training processes save and end. torchrun must outlive them: it ignores
    # SIGTERM, and passes SIGUSR1 on to them.
    shell = ["sh", "-c", f"trap '' TERM; exec {script}"]
    if nodes == 1:
        return shell
    srun = ["srun", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1", f"--cpus-per-task={threads}"]
    return [*srun, "--kill-on-bad-exit=1", *shell]


def _run(command: list[str], threads: int) -> tuple[int, int]:
    """Run a command to its end. The first SIGINT or SIGTERM to this process is passed on as SIGUSR1.

    Returns:
        (the command's exit code, the signal that was passed on or 0).
    """
    paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": paths}
    # A session of its own: Ctrl-C reaches only this process, which passes it on. The child inherits the locks on GPUs, and keeps
    # them if this process is killed.
    output = {"stdout": _file(sys.stdout), "stderr": _file(sys.stderr)}
    process: subprocess.Popen | None = None
    stopped: list[int] = []

    def stop(number: int, frame: object) -> None:
        stopped.append(number)
        if process and len(stopped) == 1:
            process.send_signal(signal.SIGUSR1)

    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        process = subprocess.Popen(command, env=environment, start_new_session=True, close_fds=False, **output)
        if stopped:  # while the process was being started
            process.send_signal(signal.SIGUSR1)
        return process.wait(), next(iter(stopped), 0)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _file(stream: TextIO) -> TextIO | None:
    """The stream, such as a log, if it has a file descriptor that a child process can use; otherwise None."""
    try:
        stream.fileno()
    except OSError:
        return None
    return stream
