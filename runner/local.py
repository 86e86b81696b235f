"""Jobs on this machine, through submitit, in sessions of their own: they outlive the launcher and its Ctrl-C."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
from submitit.local.local import LocalExecutor, LocalJob

from runner.job import do_jobs

__all__ = ["run_here", "submit_local"]

_NO_LIMIT_MIN = 60 * 24 * 365
_STARTED: list[subprocess.Popen[bytes]] = []
"""Jobs that this process started: kept, for an unreferenced Popen of a living process warns."""


class _Detached(LocalExecutor):
    """submitit's local executor, but each job in a new session, with its own environment and its output in a file.

    submitit itself starts jobs in the launcher's process group and on its standard output.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        super().__init__(folder)
        self._environment = dict(environment)

    def _submit_command(self, command: str) -> LocalJob[Any]:
        environment = self._environment | {
            "SUBMITIT_LOCAL_NTASKS": "1",
            "SUBMITIT_LOCAL_COMMAND": command,
            "SUBMITIT_LOCAL_TIMEOUT_S": str(60 * _NO_LIMIT_MIN),
            "SUBMITIT_LOCAL_SIGNAL_DELAY_S": "30",
            "SUBMITIT_LOCAL_NODEID": "0",
            "SUBMITIT_LOCAL_JOB_NUM_NODES": "1",
            "SUBMITIT_STDERR_TO_STDOUT": "1",
            "SUBMITIT_EXECUTOR": "local",
            "SUBMITIT_LOCAL_WITH_SHELL": "",
        }
        with (self.folder / "controller.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "submitit.local._local", str(self.folder)],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        _STARTED.append(process)
        return LocalJob(folder=self.folder, job_id=str(process.pid), process=process, tasks=[0])


def submit_local(
    lists: Sequence[Path], environment: Mapping[str, str], submitted: Callable[[Path, str, int, float], None]
) -> None:
    """Start one job a list; `submitted(list, job id, pid, start time)` is called after each."""
    for path in lists:
        folder = path.with_suffix("")
        folder.mkdir()
        job = _Detached(folder, environment).submit(do_jobs, str(path))
        pid = int(job.job_id)
        try:
            created = psutil.Process(pid).create_time()
        except psutil.NoSuchProcess:
            created = 0.0
        submitted(path, job.job_id, pid, created)


def run_here(path: Path, environment: Mapping[str, str]) -> int:
    """Do one list in the foreground, with its output on this terminal; the exit code."""
    command = [sys.executable, "-u", "-m", "runner.job", str(path)]
    sys.stderr.write(f"$ {shlex.join(command)}\n")
    return subprocess.run(command, env=dict(environment), check=False).returncode
