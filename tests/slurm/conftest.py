"""A real SLURM on this machine for the tests in this folder, and a place to launch from."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from launching import Place  # noqa: E402

EXECUTOR = "[executor]\npreset = 'test'\n[presets.test]\ntime_min = 5\nmemory_gb = 2\nsignal_delay_s = 30\n"
NEEDED = ("slurmctld", "slurmd", "sbatch", "slurmdbd", "mariadbd")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder, and skip it with a reason where there is no SLURM."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [name for name in NEEDED if not shutil.which(name, path=path)]
    for item in items:
        if HERE in Path(item.path).parents:
            item.add_marker(pytest.mark.slurm)
            item.add_marker(pytest.mark.xdist_group("slurm"))  # one cluster at a time
            if missing:
                item.add_marker(pytest.mark.skip(reason=f"no SLURM here ({', '.join(missing)} not found)"))


class Cluster:
    """A running SLURM: its folder, and its own settings."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, *words: str) -> str:
        """The output of a SLURM command."""
        return subprocess.run(words, capture_output=True, text=True, timeout=60, check=True).stdout.strip()

    def try_to(self, *words: str) -> None:
        """A SLURM command that may be refused."""
        subprocess.run(words, capture_output=True, timeout=60, check=False)

    def daemon(self, name: str) -> int:
        """The pid of a daemon that this cluster started."""
        lines = [line.split() for line in (self.folder / "pids").read_text().splitlines()]
        return next(int(pid) for daemon, pid, _ in lines if daemon == name)


def free_ports(count: int = 6) -> int:
    """The first of `count` ports in a row that are free: two checkouts may be tested at a time."""
    first = 16817 + os.getpid() % 2000 * 8
    return next(base for base in range(first, 60000, 8) if all(_free(base + k) for k in range(count)))


def _free(port: int) -> bool:
    with socket.socket() as tried:
        try:
            tried.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def start(**settings: str) -> Iterator[Cluster]:
    """Start a cluster, name it in SLURM_CONF, stop it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # short: unix sockets have a path limit
    before = os.environ.get("SLURM_CONF")
    words = [str(HERE / "start-slurm.sh"), str(folder)]
    environment = os.environ | {"ST_PORT": str(free_ports())} | settings
    subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)
    os.environ["SLURM_CONF"] = str(folder / "etc/slurm.conf")
    try:
        yield Cluster(folder)
    finally:
        if before is None:
            os.environ.pop("SLURM_CONF")
        else:
            os.environ["SLURM_CONF"] = before
        subprocess.run([str(HERE / "stop-slurm.sh"), str(folder)], check=True, stdout=subprocess.DEVNULL)
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """One node, with accounting, memory limits and a small MaxArraySize."""
    yield from start(ST_MAXARRAY="8", ST_EXTRA="JobAcctGatherParams=OverMemoryKill")


@pytest.fixture
def place(tmp_path: Path, cluster: Cluster) -> Iterator[Place]:
    """A folder with the toy, whose study runs on the cluster; its jobs are cancelled afterwards."""
    del cluster
    place = Place(tmp_path)
    place.executor = EXECUTOR
    yield place
    place.go.touch()
    subprocess.run(["scancel", "-u", str(os.getuid())], timeout=60, check=False)
