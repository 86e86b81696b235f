"""The command that turns a forecast into a commitment."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecast.console import JsonFlag, note, show_record
from forecast.errors import ForecastError

if TYPE_CHECKING:
    from forecast.fitted import Fit
    from forecast.records import Run, Target
    from prereg.log import Log
    from prereg.statement import Registration
    from prereg.terms import Terms

__all__ = ["add_to", "log_of"]

DAYS = 30


def add_to(app: typer.Typer) -> None:
    """Register `register` on `app`."""
    app.command("register")(register_command)


def register_command(
    fit_file: Annotated[Path, typer.Argument(metavar="FIT", help="A fit that `fit --out` wrote.")],
    targets: Annotated[Path, typer.Argument(help="Targets: a JSON list, or TOML with [[targets]].")],
    log: Annotated[Path, typer.Option("--log", help="The log's folder; a new one is started.")],
    claim: Annotated[str | None, typer.Option("--claim", help="The claim in one sentence.")] = None,
    terms: Annotated[
        Path | None, typer.Option("--terms", help="TOML with claim, rules, access ...; options come before it.")
    ] = None,
    key: Annotated[
        Path | None, typer.Option("--key", help="Your SSH key: the private file, or with an agent the .pub file.")
    ] = None,
    author: Annotated[str | None, typer.Option("--author", help="Who signs; only for a new log.")] = None,
    refuted_by: Annotated[str | None, typer.Option("--refuted-by", help="What would refute the claim.")] = None,
    access: Annotated[
        str | None, typer.Option("--access", help="What you have seen: none, pilot or outcomes; default none.")
    ] = None,
    seen: Annotated[list[str] | None, typer.Option("--seen", help="A target or pilot already seen; repeat.")] = None,
    deadline: Annotated[
        str | None, typer.Option("--deadline", help=f"Day (UTC) to be resolved by; default in {DAYS} days.")
    ] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="ID=RULE: a reason for which a run may be left out; repeat.")
    ] = None,
    exploratory: Annotated[
        list[str] | None, typer.Option("--exploratory", help="What will be looked at without a claim; repeat.")
    ] = None,
    known: Annotated[
        list[Path] | None, typer.Option("--known", help="Runs that exist; targets among them are refused; repeat.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option("--delta", help="Margin in units of seed noise; default 1, worth a rerun.")
    ] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="Level of the primary test; default 0.05.")] = None,
    code_hash: Annotated[
        str | None, typer.Option("--code-hash", help="Hash of the code that will run; default this code.")
    ] = None,
    lock_hash: Annotated[
        str | None, typer.Option("--lock-hash", help="Hash of its constraints.txt; default this one.")
    ] = None,
    authorities: Annotated[
        Path | None, typer.Option("--authorities", help="TOML of time authorities, to stamp at once.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Sign without asking.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the document; write and sign nothing.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write and sign what a fit forecasts of targets that have not been run."""
    from prereg.registering import body_of, read_targets

    options: dict[str, Any] = {"claim": claim, "deadline": deadline, "refuted_by": refuted_by}
    options |= {"delta": delta, "alpha": alpha, "exploratory": exploratory}
    options |= {"code_hash": code_hash, "lock_hash": lock_hash, "exclusions": _rules(exclude)}
    options |= {"access": {"level": access or "none", "seen": seen or []} if access or seen else None}
    decided = _decided(terms, options)
    if not known:
        note("whether targets have outcomes already was not examined; name the runs that exist with --known")
    wanted, quantities = read_targets(targets)
    decided = _with_evaluation(decided, wanted)
    statement = _statement(fit_file, wanted, quantities, decided, known or [])
    body = body_of(statement)
    if dry_run:
        show_record(body, as_json=True)
        note("dry run: nothing was signed or written")
        return
    if key is None:
        raise ForecastError("no key to sign with; give one with --key (make one with: ssh-keygen -t ed25519)")
    if not yes:
        show_record(body, as_json=True)
        _summary(statement)
        if not sys.stdin.isatty():
            raise ForecastError("signing needs a yes; answer at a terminal or give --yes")
        typer.confirm("Sign this?", abort=True, err=True)
    book = log_of(log, author, key)
    signed = book.append("register", body, key=key)
    for name in book.removed:
        note(f"removed {name}, which an interrupted writer had left")
    _summary(statement)
    show_record(
        {"entry": str(signed.path), "digest": signed.digest, "targets": len(statement.targets), "runs": statement.runs},
        as_json=as_json,
    )
    if authorities is None:
        note(
            "time owed: no authority has stamped this yet (`platocast log stamp`); until then the order "
            "rests on the seeds"
        )
        return
    from prereg.commands_amend import pay
    from prereg.time import AuthorityAway

    try:
        pay(log, authorities, key, as_json=as_json)
    except AuthorityAway as error:
        note(f"time owed: {error}")


def log_of(folder: Path, author: str | None, key: Path) -> Log:
    """The log in `folder`; a new one by `author` where there is none."""
    from prereg.log import Log

    book = Log(folder)
    if book.names():
        head = book.head()
        if author is not None and head is not None and head.entry.author != author:
            raise ForecastError(f"the log's author is {head.entry.author!r}, not {author!r}; leave --author away")
        return book
    if author is None:
        raise ForecastError(f"{folder} holds no log yet; say who signs with --author NAME")
    return Log.create(folder, author=author, key=key)


def _rules(exclude: list[str] | None) -> list[dict[str, str]] | None:
    pairs = [text.partition("=") for text in exclude or []]
    if any(not rule for _, _, rule in pairs):
        raise ForecastError(f"--exclude takes ID=RULE, got {exclude}")
    return [{"id": name, "rule": rule} for name, _, rule in pairs] or None


def _decided(file: Path | None, options: dict[str, Any]) -> Terms:
    """The terms; a deadline and the hashes of this code where none are given."""
    from datetime import UTC, datetime, timedelta

    from forecast.code import code_hash, own_root
    from forecast.files import sha256_hex
    from prereg.terms import read_terms

    later = (datetime.now(UTC).date() + timedelta(days=DAYS)).isoformat()
    terms = read_terms(file, options, {"deadline": later})
    root = own_root()
    lock = root / "constraints.txt"
    found: dict[str, Any] = {}
    if terms.code_hash is None:
        found["code_hash"] = code_hash(root)
        found["lock_hash"] = terms.lock_hash or (sha256_hex(lock.read_bytes()) if lock.is_file() else None)
    return terms.model_copy(update=found)


def _with_evaluation(terms: Terms, targets: list[Target]) -> Terms:
    """The terms with the hash of our own evaluation code, where every target is scored by it (a world of ours)."""
    from forecast.code import evaluation_code_hash, own_root

    if terms.evaluation_code_hash or not all("world.hash" in target.design.settings for target in targets):
        return terms
    return terms.model_copy(update={"evaluation_code_hash": evaluation_code_hash(own_root())})


def _statement(
    fit_file: Path, targets: list[Target], quantities: dict[str, str], terms: Terms, known: list[Path]
) -> Registration:
    """The statement; its random draws are seeded by the fit and the targets, so that a dry run shows what is signed."""
    import numpy as np

    from forecast.files import canonical_json, sha256_hex
    from forecast.fitted import Fit
    from forecast.prediction import baseline_predictions, predict_joint
    from prereg.registering import forecast_targets, refuse_known_targets, state

    fit: Fit = Fit.load(fit_file)
    fit_bytes = fit_file.read_bytes()
    refuse_known_targets(targets, fit, _runs(known))
    listed = canonical_json([target.model_dump(mode="json") for target in targets])
    rng = np.random.default_rng(int(sha256_hex(fit_bytes + listed)[:16], 16))
    return state(
        fit,
        fit_bytes,
        forecast_targets(fit, targets, quantities, rng),
        joint=predict_joint(fit, targets, rng, 4000),
        baselines=baseline_predictions(fit, targets),
        terms=terms,
        rng=rng,
        quantities=quantities,
    )


def _runs(paths: list[Path]) -> list[Run]:
    if not paths:
        return []
    from forecast.reading import read_runs

    return [run for path in paths for run in read_runs(path)]


def _summary(statement: Registration) -> None:
    noise, power = statement.noise, statement.power
    note(f"claim: {statement.claim}")
    note(f"{len(statement.targets)} targets, {statement.runs} runs, to be resolved by {statement.rules.deadline}")
    sigma = "unknown" if noise.sigma is None else f"{noise.sigma:.4g} ({noise.degrees_of_freedom} degrees of freedom)"
    rule = statement.rules.primary
    note(f"seed noise {sigma}; primary test: {rule.test}, margin {rule.delta:g} x seed noise, alpha {rule.alpha:g}")
    for point in power:
        note(
            f"  power: chance of AS GOOD {point.probability:.2f} if the law errs by {point.curve_error:g} x seed noise"
        )
    if not power:
        note("  power: none; without replicates and seed noise there will be no verdict")
