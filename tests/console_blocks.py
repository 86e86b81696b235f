"""The console blocks of a document: run as a user would type them, compared or written anew.

    python tests/console_blocks.py README.md     # runs every block and writes its real output into the file

A block opens with ```console and holds lines "$ command" each followed by what it printed (both streams,
80 columns). A block opened with ```console varies holds the output of one real run whose numbers cannot
repeat (fresh signatures, derived seeds): its commands are run, its output is not compared. A block opened with
```python title="NAME" (or another language) is a file that the commands find.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```console( varies)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r'^```\w+ title="([^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Command:
    """One command of a block and the output that the document shows of it."""

    line: str
    shown: str
    varies: bool


def blocks_of(text: str) -> list[list[Command]]:
    """The commands of each console block, in order."""
    found = []
    for varies, body in BLOCK.findall(text):
        parts = re.split(r"^\$ ", body, flags=re.MULTILINE)
        assert not parts[0].strip(), f"a console block starts with output: {parts[0]!r}"
        pairs = [part.partition("\n") for part in parts[1:]]
        found.append([Command(line, shown, bool(varies)) for line, _, shown in pairs])
    return found


def run(command: Command, folder: Path) -> str:
    """What the command prints in `folder`, both streams; it must end with exit code 0."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = os.environ | {"PATH": path, "COLUMNS": "80", "TERM": "dumb", "NO_COLOR": "1"}
    done = subprocess.run(
        ["bash", "-c", command.line],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"$ {command.line}\nexit code {done.returncode}\n{done.stdout}"
    return "".join(line.rstrip() + "\n" for line in done.stdout.splitlines())


def differences(shown: str, printed: str, *, tolerance: float = 0.02) -> list[str]:
    """Lines that differ in their words, or in a number by more than the tolerance."""
    old, new = ([_parted(line) for line in text.splitlines()] for text in (shown, printed))
    wrong = [] if len(old) == len(new) else [f"{len(old)} line(s) shown, {len(new)} printed"]
    for (words, numbers), (new_words, new_numbers) in zip(old, new, strict=False):
        same = words == new_words and len(numbers) == len(new_numbers)
        if not same or any(
            abs(a - b) > tolerance * max(abs(a), abs(b)) for a, b in zip(numbers, new_numbers, strict=True)
        ):
            wrong.append(f"shown {words} {numbers}, printed {new_words} {new_numbers}")
    return wrong


def _parted(line: str) -> tuple[list[str], list[float]]:
    """Words and numbers of a line; digests, times and the width of rules and columns do not count."""
    line = re.sub(r"\b[0-9a-f]{16,64}\b|SHA256:\S+|\d{4}-\d\d-\d\d(T[\d:.]+Z)?", "*", line)
    words = [word for word in NUMBER.sub(" ", line).split() if not set(word) <= set("━╇┃│")]
    return words, [float(number.replace(",", "")) for number in NUMBER.findall(line)]


def prepare(folder: Path, text: str = "") -> Path:
    """A folder that looks like the checkout's root to the commands, with the titled files of the document."""
    (folder / "data").symlink_to(ROOT / "data")
    for name, content in FILE.findall(text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, "utf-8")
    return folder


def rewrite(document: Path) -> None:
    """Run every block of `document` in one fresh folder and write what was printed into it."""
    text = document.read_text("utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = prepare(Path(name), text)

        def anew(match: re.Match[str]) -> str:
            (commands,) = blocks_of(match.group(0))
            body = "".join(f"$ {command.line}\n{run(command, folder)}" for command in commands)
            return f"```console{match.group(1) or ''}\n{body}```"

        text = BLOCK.sub(anew, text)
    document.write_text(text, "utf-8")


if __name__ == "__main__":
    rewrite(Path(sys.argv[1]))
