"""Other tools that benchmarks measure against, unpacked into a folder of their own outside the checkout."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

__all__ = ["use_peers"]

PEER = "simple-scaling-laws==0.2.0"  # pure Python that runs on 3.11, but declares 3.12: so it is fetched for 3.13
OTHERS = ("polars==2.1.0", "polars-runtime-32==2.1.0", "autograd==1.9.1")


def use_peers(folder: Path | None = None) -> Path:
    """Make the peers importable, fetching them where the folder does not hold them yet; the folder."""
    where = folder or Path(tempfile.gettempdir()) / "platocast-bench-peers"
    if not (where / "done").is_file():
        where.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--quiet", "download", "--no-deps", "--only-binary=:all:", "-d", str(where)]
        subprocess.run([*pip, "--python-version", "3.13", PEER], check=True)
        subprocess.run([*pip, *OTHERS], check=True)
        for wheel in where.glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(where)
        (where / "done").write_text("")
    if str(where) not in sys.path:
        sys.path.append(str(where))
    return where
