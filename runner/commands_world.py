"""The command `world`: build the shipped worlds from their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from forecast.console import JsonFlag, note, show_record
from forecast.errors import ForecastError

__all__ = ["add_to"]

Name = Annotated[str, typer.Argument(help="Which world: glyphs.")]
Out = Annotated[Path, typer.Option("--out", help="Where the world's files go.")]


def add_to(app: typer.Typer) -> None:
    """Register these commands on `app`."""
    world = typer.Typer(help="Build a shipped world from its sources.", no_args_is_help=True)
    world.command("build")(build_command)
    world.command("reference")(reference_command)
    app.add_typer(world, name="world")


def build_command(
    name: Name,
    out: Out = Path("data/glyphs"),
    packages: Annotated[
        Path, typer.Option("--from", help="Folder of the npm tarballs; what is missing is fetched there by npm.")
    ] = Path("build/packages"),
    as_json: JsonFlag = False,
) -> None:
    """Build a world's scenes, texts, tokens and pixels. Needs the extra 'world' and, to fetch, npm."""
    _known(name)
    from runner.progress import progress_bar
    from runner.worlds.glyphs_build import build_glyphs

    with progress_bar("rasterise") as bar:
        manifest = build_glyphs(packages, out, progress=lambda what, done, total: bar(done, total))
    note(f"wrote {out}")
    show_record({k: v for k, v in manifest["counts"].items() if not isinstance(v, dict)}, as_json=as_json)


def reference_command(
    name: Name,
    out: Out = Path("data/glyphs"),
    threads: Annotated[int, typer.Option("--threads", min=1, help="CPU threads; 1 repeats bit for bit.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Train the fixed image reference of a world anew. Needs the extra 'train'; minutes to an hour."""
    _known(name)
    from runner.progress import progress_bar
    from runner.worlds.reference import build_reference

    with progress_bar("image pairs") as bar:
        digest = build_reference(out, threads=threads, progress=bar)
    show_record({"file": str(out / "reference.npy"), "sha256": digest}, as_json=as_json)


def _known(name: str) -> None:
    if name != "glyphs":
        raise ForecastError(f"no world is named {name!r}; there is: glyphs")
