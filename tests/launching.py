"""A toy training and a study of it, for tests of launching."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil

TOY = '''
import os, time
from pathlib import Path
from types import SimpleNamespace

from forecast.records import Counters, Evaluation, Metric


def run(settings, *, seed, threads, progress):
    """Alignment grows with n_samples; what `do` says happens first."""
    with open(os.environ["TOY_STARTS"], "a") as file:
        file.write(f"{settings.get('n_samples')}/{settings.get('do')}/{seed}\\n")
    do = settings.get("do")
    print(f"the toy says {settings['n_samples']}", flush=True)
    if do == "raise" or (do == "until-go" and not Path(os.environ["TOY_GO"]).exists()):
        raise ValueError("the toy was told to fail")
    if do == "exit":
        raise SystemExit(3)
    if do == "nan":
        return SimpleNamespace(evaluations=(Evaluation(metric=Metric(name="m"), value=float("nan")),))
    if do == "die":
        os.kill(os.getpid(), 9)
    if do == "deaf":
        time.sleep(1000)
    if do == "wait":
        while not Path(os.environ["TOY_GO"]).exists():
            progress(1, 4)
            time.sleep(0.02)
    progress(int(settings["n_samples"]), int(settings["n_samples"]))
    value = Evaluation(metric=Metric(name="alignment"), value=settings["n_samples"] / 1000 + seed)
    counters = Counters(samples_seen=settings["n_samples"])
    return SimpleNamespace(evaluations=(value,), counters=counters, data_hash="ab" * 32)


def walk(settings, *, seed, threads, progress, checkpoint):
    """A random walk of n_samples steps of `step_s` seconds, saved and continued at any step."""
    import json, random

    with open(os.environ["TOY_STARTS"], "a") as file:
        file.write(f"{settings['n_samples']}/walk/{seed}\\n")
    rng, at, position = random.Random(seed), 0, 0.0
    saved = checkpoint.load()
    if saved is not None:
        at, position, (version, state, gauss) = json.loads(saved)
        rng.setstate((version, tuple(state), gauss))
    with open(os.environ["TOY_STARTS"] + ".steps", "a") as file:
        file.write(f"{at}\\n")
    while at < settings["n_samples"]:
        position, at = position + rng.gauss(0, 1), at + 1
        time.sleep(settings.get("step_s", 0))
        if checkpoint.due:
            checkpoint.save(json.dumps([at, position, rng.getstate()]).encode())
        progress(at, settings["n_samples"])
    value = Evaluation(metric=Metric(name="position"), value=position)
    return SimpleNamespace(evaluations=(value,), counters=Counters(samples_seen=at), data_hash="ab" * 32)


def pair(settings, *, seed, threads, progress):
    """Full-batch descent over two shards, one a task where there are two; the sum of both is the same either way."""
    import submitit, torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    count = int(os.environ.get("SLURM_NTASKS", "1"))
    rank = 0
    if count > 1:
        here = submitit.helpers.TorchDistributedEnvironment().export(set_cuda_visible_devices=False, overwrite=True)
        dist.init_process_group("gloo")
        rank = here.rank
    if settings.get("broken_rank") == rank:
        raise ValueError("this rank was told to fail")
    rows = torch.randn(64, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    shards, weights = [rows[:32], rows[32:]], torch.zeros(3, dtype=torch.float64)
    for step in range(settings["n_samples"]):
        mine = [shards[rank]] if count > 1 else shards
        parts = [shard.T @ (shard @ weights - shard.sum(1)) for shard in mine]
        total = parts[0] if count > 1 else parts[0] + parts[1]
        if count > 1:
            dist.all_reduce(total)
        weights = weights - 0.01 * total
        progress(step + 1, settings["n_samples"])
    if count > 1:
        dist.barrier()
        dist.destroy_process_group()
    value = Evaluation(metric=Metric(name="weight"), value=float(weights[0]))
    return SimpleNamespace(evaluations=(value,), counters=Counters(steps=step + 1), data_hash="ab" * 32)


def loaders(settings, *, seed, threads, progress, checkpoint):
    """A walk with forked children that live as long as it does, as a data loader's workers do."""
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            while os.getppid() != 1:
                time.sleep(0.01)
            os._exit(0)
        children.append(child)
    try:
        return walk(settings, seed=seed, threads=threads, progress=progress, checkpoint=checkpoint)
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)


def eat(settings, *, seed, threads, progress):
    """Takes far more memory than the job may."""
    block = bytearray(settings["megabytes"] << 20)
    for at in range(0, len(block), 4096):
        block[at] = 1
    while not Path(os.environ["TOY_GO"]).exists():
        progress(1, 2)
        time.sleep(0.1)
    raise RuntimeError("the toy was allowed to eat it all")
'''


def until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Poll until `condition()` holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def end_all(place: Place) -> None:
    """End the processes that a test started in `place`."""
    for process in psutil.process_iter(["cmdline"]):
        if any(str(place.root) in word for word in process.info["cmdline"] or []) and process.pid != os.getpid():
            process.kill()


class Place:
    """A folder with the toy, a study of it, and where its runs go."""

    def __init__(self, root: Path, work: str = "work") -> None:
        self.root, self.work = root, root / work
        self.executor = ""
        self.work.mkdir(parents=True)
        (root / "lib").mkdir()
        (root / "lib" / "toy.py").write_text(TOY)
        self.study, self.folder, self.starts, self.go = (root / n for n in ("study.toml", "out", "starts", "go"))

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a launch that finds the toy."""
        return os.environ | {
            "PYTHONPATH": str(self.root / "lib"),
            "TOY_STARTS": str(self.starts),
            "TOY_GO": str(self.go),
        }

    def write(self, text: str, *, entry: str = "run") -> Path:
        """Write the study, whose entry is the toy."""
        self.study.write_text(f'name = "toy"\nentry = "toy:{entry}"\n{text}\n{self.executor}')
        return self.study

    def command(self, *words: str | Path) -> list[str]:
        """`platocast WORDS` as a list."""
        return [str(Path(sys.executable).with_name("platocast")), *map(str, words)]

    def run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `platocast WORDS` in the working folder."""
        return subprocess.run(
            self.command(*words),
            cwd=self.work,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def launch(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        """`platocast launch` of the study into the folder."""
        return self.run("launch", self.study, "--folder", self.folder, *words)

    def started(self) -> list[str]:
        """What the toy says it was started with: n_samples/do/seed."""
        return self.starts.read_text().split() if self.starts.exists() else []
