"""A Slurm on this machine, for as long as a test runs: munge, slurmctld, two nodes that work and two that are never up.

Everything listens on the loopback interface alone, on free ports, and writes to one folder. What has to lie elsewhere is
``/etc/slurm/{slurm,gres}.conf``: Snakemake's Slurm executor takes ``SLURM_CONF`` from a job's environment.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

PACKAGES = ("munge", "slurmctld", "slurmd", "slurm-client")
DAEMONS = ("munged", "slurmctld", "slurmd")
CONFIGURATION = Path("/etc/slurm")
MARK = "# Of a test of the POET suite, removed when it ends; its files are in "
NAME = "poet-tests"
#: Nodes that take jobs; the other two make jobs for eight GPUs acceptable, and wait.
NODES = ("up1", "up2")

#: No systemd, no cgroups, no accounting. ``config_overrides``: nodes have more cores than the machine, none is reserved.
#: A job that was requeued waits for ``cred_expire`` seconds, and ``File`` of a GPU may be any character device.
SLURM_CONF = """\
ClusterName={name}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=2,bf_interval=2
SlurmdParameters=config_overrides
MinJobAge=3600
ReturnToService=2
GresTypes=gpu
NodeName=up1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs=16 RealMemory=32000 Gres=gpu:2
NodeName=up2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs=16 RealMemory=32000 Gres=gpu:2
NodeName=never[1-2] NodeAddr=127.0.0.1 CPUs=128 RealMemory=2000000 Gres=gpu:8 State=DOWN Reason=never
PartitionName=main Nodes=ALL Default=YES
PartitionName=spare Nodes=up[1-2]
PartitionName=brief Nodes=up[1-2] MaxTime=10
"""
GRES_CONF = "NodeName=up[1-2] Name=gpu File=/dev/null,/dev/zero\n"


class Unavailable(Exception):
    """No cluster can or may be started here; one sentence says why."""


def prepare() -> None:
    """See to it that a cluster can be started: the machine has none of its own, and Debian's packages are there.

    Raises:
        Unavailable: as above.
    """
    if os.geteuid() != 0:
        raise Unavailable("Slurm's daemons need root here: run as root, in a container or a virtual machine")
    running = sorted({process.info["name"] for process in psutil.process_iter(["name"])} & set(DAEMONS))
    if running:
        raise Unavailable(f"this machine has a Slurm of its own ({', '.join(running)} running): it is left alone")
    _remove_leftovers()
    if (CONFIGURATION / "slurm.conf").exists():
        raise Unavailable(f"this machine has a Slurm of its own ({CONFIGURATION}/slurm.conf): it is left alone")
    if all(map(shutil.which, ("munged", "slurmctld", "slurmd", "sbatch"))):
        return
    if not shutil.which("apt-get"):
        raise Unavailable("no slurmctld, slurmd and munged here, and no apt-get to install them with")
    install = ["apt-get", "install", "--yes", "--no-install-recommends", *PACKAGES]
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["apt-get", "update"], install):
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=quiet)
    if done.returncode:
        raise Unavailable(f"apt-get cannot install {' '.join(PACKAGES)}: {done.stderr.strip().splitlines()[-1]}")


@contextlib.contextmanager
def cluster() -> Iterator[None]:
    """Start the cluster, and stop it and remove what it wrote: also after a failure, Ctrl-C or SIGTERM.

    Raises:
        Unavailable: see :func:`prepare`.
        RuntimeError: the nodes do not come up; the ends of the daemons' logs are in the message.
    """
    prepare()
    terminated = signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    folder, daemons = Path(tempfile.mkdtemp(prefix="poet-slurm-")), []
    folder.chmod(0o755)  # clients have to reach munge's socket
    try:
        _write_configuration(folder)
        files = [f"--{kind}-file={folder}/munge.{kind}" for kind in ("key", "log", "pid", "seed")]
        daemons.append(_start(folder, "munged", "munged", "--foreground", *files, f"--socket={folder}/munge.socket"))
        _wait(folder, (folder / "munge.socket").exists)
        daemons.append(_start(folder, "slurmctld", "slurmctld", "-D", "-c"))
        daemons += [_start(folder, node, "slurmd", "-D", "-N", node) for node in NODES]
        idle = ("sinfo", "-h", "-t", "idle", "-o", "%D", "-p", "spare")
        _wait(folder, lambda: slurm(*idle, check=False).strip() == str(len(NODES)))
        yield
    finally:
        if daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                slurm("scancel", "--me", check=False)
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                daemon.wait(20)
            daemon.kill()
        _remove_leftovers()
        signal.signal(signal.SIGTERM, terminated)


def slurm(*command: str, check: bool = True) -> str:
    """What a Slurm command prints."""
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=60).stdout


def _write_configuration(folder: Path) -> None:
    for name in ("state", *NODES):
        (folder / name).mkdir(parents=True)
    key = folder / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(os.urandom(128))
    CONFIGURATION.mkdir(exist_ok=True)
    host = socket.gethostname().partition(".")[0]
    # The file with the mark comes first, or a test that is killed here would leave the other for ever.
    text = SLURM_CONF.format(name=NAME, folder=folder, host=host, ports=_free_ports(3))
    (CONFIGURATION / "slurm.conf").write_text(f"{MARK}{folder}\n{text}")
    (CONFIGURATION / "gres.conf").write_text(GRES_CONF)


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]


def _start(folder: Path, name: str, *command: str) -> subprocess.Popen:
    """Start a daemon that ends with this process, even where this one is killed."""
    command = ("setpriv", "--pdeathsig", "TERM", *command)
    with open(folder / f"{name}.log", "w") as log:
        # In a session of its own: Ctrl-C is for the test, which then ends the daemons in order.
        return subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)


def _wait(folder: Path, ready, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        if time.monotonic() > deadline:
            logs = {path.name: path.read_text()[-500:] for path in sorted(folder.glob("*.log"))}
            raise RuntimeError(f"Slurm does not come up: {logs}")
        time.sleep(0.2)


def _remove_leftovers() -> None:
    """Remove what a cluster of this module wrote, and end the jobs that outlived its daemons."""
    configuration = CONFIGURATION / "slurm.conf"
    line = configuration.read_text().partition("\n")[0] if configuration.exists() else ""
    if not line.startswith(MARK):
        return
    folder = Path(line.removeprefix(MARK))
    left = [process for process in psutil.process_iter(["name", "cwd", "environ"]) if _belongs(process, folder)]
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=10)
    shutil.rmtree(folder, ignore_errors=True)
    (CONFIGURATION / "gres.conf").unlink(missing_ok=True)
    configuration.unlink()


def _belongs(process: psutil.Process, folder: Path) -> bool:
    """Whether a process is of the cluster in ``folder``: a step by its working folder, what it runs by its environment."""
    in_job = (process.info["environ"] or {}).get("SLURM_CLUSTER_NAME") == NAME
    return in_job or (process.info["name"] == "slurmstepd" and process.info["cwd"] == str(folder))
