"""The one command `platocast`: assembles the commands of the three packages."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any

import typer

import forecast.commands
import prereg.commands
import runner.commands
from forecast.errors import ForecastError
from forecast.plain import plain

app = typer.Typer(
    name="platocast",
    help="Forecast how a score scales, commit the forecast, launch the runs, and check it against seed noise.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@app.callback()
def _global_options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the trace of an error.")] = False,
) -> None:
    """Forecast how a score scales, commit the forecast, launch the runs, and check it against seed noise."""


forecast.commands.add_to(app)
prereg.commands.add_to(app)
runner.commands.add_to(app)


# typer carries a click of its own, so the class is looked up where typer's own errors descend from it
_USAGE_ERRORS: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command. Exit 0: done; 1: a check that failed; 2: bad input."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        code = app(args=words, prog_name="platocast", standalone_mode=False)
    except ForecastError as error:
        if "--debug" in words:
            traceback.print_exc()
        sys.stderr.write(f"error: {plain(str(error))}\n")
        code = error.exit_code
    except typer.Abort:
        sys.stderr.write("stopped\n")
        code = 130
    except _USAGE_ERRORS as error:
        error.show()
        code = 2
    raise SystemExit(code if isinstance(code, int) else 0)
