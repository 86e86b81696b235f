"""The code that jobs run: hashed, copied beside the runs, and checked again inside the job."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from forecast.code import PACKAGES, PROJECT_FILES, code_hash, code_names, files_under, hash_of, own_root, read_files
from forecast.errors import ForecastError
from forecast.files import sha256_hex

__all__ = ["PACKAGES", "Snapshot", "code_hash", "job_environment", "own_root", "take_snapshot", "verify_running_code"]

_NOT_FOR_JOBS = {"runs", "studies", "log"}


@dataclass(frozen=True)
class Snapshot:
    """A copy of the code and of the worlds. Hashes are lower-case hex sha256.

    lock_hash: of constraints.txt, None where there is none (an installed wheel).
    commit, dirty: of the checkout, None outside of one; diff_hash: of its difference from the commit, untracked
    files included, None where there is none.
    """

    path: Path
    code_hash: str
    content_hash: str
    lock_hash: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    diff_hash: str | None = None


def take_snapshot(folder: Path, root: Path | None = None) -> Snapshot:
    """Copy code and worlds from `root` (ours, if None) to `folder`/snapshot/CODE-CONTENT; once for equal bytes."""
    root = root or own_root()
    code, content = read_files(root, code_names(root)), read_files(root, _content_names(root))
    code_sum, content_sum = hash_of(code), hash_of(content)
    path = folder / "snapshot" / f"{code_sum[:16]}-{content_sum[:16]}"
    if not path.exists():
        _write_folder(path, code | content)
    lock = code.get("constraints.txt")
    commit, dirty, diff = _commit(root)
    snapshot = Snapshot(path, code_sum, content_sum, None if lock is None else sha256_hex(lock), commit, dirty, diff)
    _verify_bytes(snapshot.path, snapshot.code_hash, snapshot.content_hash)
    return snapshot


def job_environment(snapshot: Path, base: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a job: our packages from `snapshot`, never from the working folder."""
    environment = dict(os.environ if base is None else base)
    before = environment.get("PYTHONPATH")
    environment["PYTHONPATH"] = os.pathsep.join([str(snapshot), *([before] if before else [])])
    environment["PYTHONSAFEPATH"] = "1"
    return environment


def verify_running_code(snapshot: Path, expected_code: str, expected_content: str) -> None:
    """Refuse to go on unless this process runs the code of `snapshot` and its bytes have the expected hashes."""
    _verify_bytes(snapshot, expected_code, expected_content)
    inside = snapshot.resolve()
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if name.split(".")[0] in PACKAGES and file and inside not in Path(file).resolve().parents:
            raise ForecastError(
                f"module {name} was loaded from {file}, not from the snapshot {snapshot}; "
                "start jobs with PYTHONSAFEPATH=1 and the snapshot first in PYTHONPATH (platocast launch does)"
            )


def _verify_bytes(path: Path, expected_code: str, expected_content: str) -> None:
    for what, expected, names in (
        ("code", expected_code, code_names(path)),
        ("content", expected_content, _content_names(path)),
    ):
        found = hash_of(read_files(path, names))
        if found != expected:
            raise ForecastError(
                f"snapshot {path}: its {what} has the hash {found[:16]}, not {expected[:16]} as launched; "
                "remove that folder and launch again"
            )


def _content_names(root: Path) -> list[str]:
    base = "data" if (root / "pyproject.toml").is_file() else "runner/content"
    if not (root / base).is_dir():
        return []
    return [
        name for name in files_under(root, base) if name.removeprefix(f"{base}/").split("/")[0] not in _NOT_FOR_JOBS
    ]


def _write_folder(path: Path, files: Mapping[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
    try:
        for name, data in files.items():
            target = temporary / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        temporary.chmod(0o755)
        os.rename(temporary, path)
    except OSError:
        shutil.rmtree(temporary, ignore_errors=True)
        if not path.exists():
            raise


def _commit(root: Path) -> tuple[str | None, bool | None, str | None]:
    """The checkout's commit, whether our files differ from it, and the hash of how."""
    if not (root / ".git").exists():
        return None, None, None
    ours = ("--", *PACKAGES, *PROJECT_FILES)
    try:
        commit = _git(root, "rev-parse", "HEAD").decode().strip()
        changed = _git(root, "status", "--porcelain", *ours)
        if not changed.strip():
            return commit, False, None
        names = _git(root, "ls-files", "--others", "--exclude-standard", "-z", *ours).decode().split("\0")
        untracked = {name: (root / name).read_bytes() for name in names if name}
        difference = _git(root, "diff", "--no-ext-diff", "--no-textconv", "--binary", "HEAD", *ours)
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None, None, None
    return commit, True, hash_of({"": difference, **untracked})


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, check=True, timeout=30).stdout
