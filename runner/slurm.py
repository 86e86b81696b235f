"""Submission to SLURM: arrays whose script submitit writes, sent once, found again by their unique names."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from submitit.slurm.slurm import SlurmExecutor

from forecast.console import note
from forecast.errors import ForecastError
from runner.presets import Preset
from runner.slurm_queue import SlurmAway, find_by_name, max_array_size

__all__ = ["array_names", "slurm_environment", "submit_arrays"]

_SBATCH_S = 60
_DEAF_UNTIL_LISTENING = "trap '' USR2; exec \"$@\""
"""SLURM's signal would kill a Python that does not listen yet; one that has not begun has nothing to save."""
_AWAY = re.compile(r"timed out|unable to contact|connection refused|communication|try again", re.IGNORECASE)


def slurm_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`environment` without what an enclosing job left in it; SLURM_CONF stays."""
    return {
        name: value
        for name, value in environment.items()
        if name in ("SLURM_CONF", "SLURM_CLUSTERS")
        or not name.startswith(("SLURM_", "SUBMITIT_", "SRUN_", "PMI_", "PMIX_", "SBATCH_EXPORT", "SBATCH_ARRAY"))
    }


def array_names(name: str, count: int, size: int | None = None) -> list[tuple[str, int, int]]:
    """The arrays for `count` jobs: unique name, number of the first job, number of jobs; split at MaxArraySize."""
    size = max_array_size() if size is None else size
    token = secrets.token_hex(4)
    return [
        (f"{name}-{token}-{part}", first, min(size, count - first)) for part, first in enumerate(range(0, count, size))
    ]


def submit_arrays(
    arrays: Sequence[tuple[str, int, int]],
    submission: Path,
    environment: Mapping[str, str],
    preset: Preset,
    submitted: Callable[[str, str], None],
    *,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Send each array; `submitted(name, job id)` is called after each. Raises ForecastError with sbatch's words."""
    clean = slurm_environment(environment)
    for name, first, count in arrays:
        script = submission / f"{name}.sh"
        script.write_text(_script(name, first, count, submission, clean, preset))
        submitted(name, _send_once(name, script, clean, pause))


def _script(name: str, first: int, count: int, submission: Path, environment: Mapping[str, str], preset: Preset) -> str:
    executor = SlurmExecutor(submission / "slurm")
    (submission / "slurm").mkdir(exist_ok=True)
    given = {
        "job_name": name,
        "time": preset.time_min,
        "nodes": preset.nodes,
        "ntasks_per_node": preset.tasks_per_node,
        "cpus_per_task": preset.cpus_per_task,
        "gpus_per_node": preset.gpus_per_node or None,
        "mem": None if preset.memory_gb is None else f"{round(preset.memory_gb * 1024)}M",
        "partition": preset.partition,
        "account": preset.account,
        "qos": preset.qos,
        "constraint": preset.constraint,
        "signal_delay_s": preset.signal_delay_s,
        "array_parallelism": preset.parallel,
        "wckey": None,
        "stderr_to_stdout": True,
        "comment": str(submission),
        "setup": _setup(environment, preset),
        "srun_args": ["--kill-on-bad-exit=1", "--export=ALL", *preset.srun_args],
        "additional_parameters": {"export": "ALL", "requeue": True, "chdir": str(submission)}
        | ({"container": preset.container} if preset.container else {}),
    }
    executor.update_parameters(**{key: value for key, value in given.items() if value is not None or key == "wckey"})
    executor.parameters["map_count"] = count
    command = f"sh -c {shlex.quote(_DEAF_UNTIL_LISTENING)} sh {executor.python} -u -m runner.job"
    command += f" {shlex.quote(str(submission))} {first}"
    return str(executor._make_submission_file_text(command, name))


def _setup(environment: Mapping[str, str], preset: Preset) -> list[str]:
    """The preset's lines, which fail loudly, then our packages first on the path whatever those lines did."""
    snapshot = shlex.quote(environment["PYTHONPATH"])
    return [
        "set -e",
        *preset.setup,
        f"export PYTHONPATH={snapshot}${{PYTHONPATH:+:$PYTHONPATH}}",
        "export PYTHONSAFEPATH=1",
    ]


def _send_once(name: str, script: Path, environment: Mapping[str, str], pause: Callable[[float], None]) -> str:
    """The job id. If the controller does not answer, the job is looked up by its name before it is sent again."""
    for attempt in range(1, 4):
        said = _sbatch(script, environment)
        found = re.search(r"Submitted batch job (\d+)", said)
        if found:
            return found[1]
        if not _AWAY.search(said):
            raise ForecastError(f"sbatch refused {script}: {said}; correct the preset")
        note(f"SLURM does not answer (attempt {attempt}): {said}; looking for {name} before sending it again")
        number = _await_answer(name, environment, pause)
        if number is not None:
            return number
    raise ForecastError(f"SLURM did not take {name} in 3 attempts; launch again when it answers")


def _await_answer(name: str, environment: Mapping[str, str], pause: Callable[[float], None]) -> str | None:
    """The id of job `name` once the controller answers, None if it answers 5 times that there is none."""
    unknown, wait = 0, 1.0
    for _ in range(60):
        try:
            found = find_by_name(name, environment)
        except SlurmAway:
            unknown = 0
        else:
            if found:
                return found[0]
            unknown += 1
            if unknown == 5:
                return None
        pause(wait)
        wait = min(wait * 1.5, 10) if unknown == 0 else 1.0
    raise ForecastError(f"SLURM does not answer; whether {name} was taken is unknown; launch again when it does")


def _sbatch(script: Path, environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(
            ["sbatch", str(script)],
            env=dict(environment),
            capture_output=True,
            text=True,
            timeout=_SBATCH_S,
            check=False,
        )
    except FileNotFoundError as error:
        raise ForecastError("sbatch is not on PATH; launch on a login node, or use --executor local") from error
    except subprocess.TimeoutExpired:
        return f"sbatch timed out after {_SBATCH_S} s"
    return (done.stdout + done.stderr).strip()


def cancel_by_name(names: Sequence[str], environment: Mapping[str, str] | None = None) -> list[str]:
    """Cancel all jobs of these unique names; the ids that were found."""
    found = [number for name in names for number in find_by_name(name, environment or os.environ)]
    for number in found:
        subprocess.run(["scancel", number], capture_output=True, timeout=60, check=False)
    return found
