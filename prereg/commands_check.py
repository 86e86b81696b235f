"""The command that compares a registration with what happened."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from forecast.console import JsonFlag, note, show_record, show_table
from forecast.errors import CheckFailed, ForecastError

if TYPE_CHECKING:
    from prereg.check import Check, PrimaryResult

__all__ = ["add_to"]


def add_to(app: typer.Typer) -> None:
    """Register `check` on `app`."""
    app.command("check")(check_command)


def check_command(
    entry: Annotated[Path, typer.Argument(help="The registration: LOG/NNNN-register.json.")],
    ledger: Annotated[Path, typer.Option("--ledger", help="The runs that came of it: .jsonl, .duckdb or a table.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write the check (check.json).")] = None,
    exclude: Annotated[
        list[str] | None, typer.Option("--exclude", help="RUN=RULE: leave a run out under a registered rule; repeat.")
    ] = None,
    allowed_signers: Annotated[
        Path | None, typer.Option("--allowed-signers", help="Your own allowed_signers file, from outside the log.")
    ] = None,
    head: Annotated[str | None, typer.Option("--head", help="The last digest that you know of.")] = None,
    authority_ca: Annotated[
        Path | None, typer.Option("--authority-ca", help="PEM of the time authorities that you trust.")
    ] = None,
    sacct: Annotated[Path | None, typer.Option("--sacct", help="What SLURM's accounting printed, see README.")] = None,
    resolve: Annotated[bool, typer.Option("--resolve", help="Sign the result into the log; needs --key.")] = False,
    key: Annotated[Path | None, typer.Option("--key", help="The log's SSH key, for --resolve.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say whether a registered forecast held, against seed noise.

    Exit 0: the check was made, whatever its verdict; 1: the log or the outcomes failed verification; 2: bad input.
    """
    from datetime import UTC, datetime

    import numpy as np

    from forecast.reading import read_runs
    from prereg.check import check
    from prereg.order import order_of, read_sacct
    from prereg.statement import find_registration
    from prereg.verify import examine_log, said_before

    if resolve and key is None:
        raise ForecastError("--resolve signs the result into the log; give the log's key with --key")
    registration, runs = find_registration(entry), read_runs(ledger)
    found = examine_log(entry.parent, allowed_signers=allowed_signers, head=head, authority_ca=authority_ca)
    found.report(entry.parent).raise_if_failed()
    notes = [f for f in found.findings if f.level != "verified" and f.seq in (None, registration.signed.seq)]
    notes += said_before(found, entry.parent, registration, runs)
    result = check(
        registration,
        runs,
        rng=np.random.default_rng(int(registration.digest[:16], 16)),
        as_of=datetime.now(UTC).date(),
        exclusions=_pairs(exclude or []),
        order=order_of(registration, found.witness, sacct=read_sacct(sacct) if sacct else None, runs=runs),
        notes=notes,
        final=resolve,
    )
    if out is not None:
        result.save(out)
        note(f"wrote {out}")
    if as_json:
        show_record(result.model_dump(mode="json"), as_json=True)
    else:
        _print(result)
    if not result.ok:
        lines = "\n".join(f"  {finding.text}" for finding in result.findings if finding.level == "failed")
        raise CheckFailed(f"the outcomes do not verify\n{lines}")
    if resolve and key is not None:
        _resolve(entry, key, ledger, result)


def _resolve(entry: Path, key: Path, ledger: Path, result: Check) -> None:
    from prereg.resolving import resolve

    signed = resolve(entry.parent, result, ledger=ledger, key=key)
    note(f"signed the result: {signed.path}")


def _print(result: Check) -> None:
    headline = {
        "headline": result.headline,
        "claim": result.claim,
        "order": result.order,
        "outcomes": f"{result.finished} of {result.expected} finished, {result.failed} failed, "
        f"{result.missing} missing, {result.excluded} excluded",
        "RMSE": result.rmse,
        "seed noise (sigma)": result.sigma,
        "sigma from": result.sigma_source,
        "rerun difference (sqrt 2 sigma)": result.rerun,
        "RMSE / sigma": result.rmse / result.sigma if result.rmse is not None and result.sigma else None,
        "test items' own error": result.item_error,
    }
    show_record(headline, as_json=False)
    if result.primary is not None:
        _print_test(result.primary)
    if result.all_runs is not None:
        note(f"with nothing excluded: {result.all_runs.label}")
    if result.baselines:
        skill = {row.baseline: row.skill for row in result.scores.skill} if result.scores else {}
        rows = [
            {"baseline": b.baseline, "RMSE": b.rmse, "skill of the forecast": skill.get(b.baseline), "label": b.label}
            for b in result.baselines
        ]
        show_table(rows, title="baselines, same test", as_json=False)
    _print_scores(result)
    for finding in result.findings:
        note(f"{finding.level}: {finding.text}")


def _print_test(test: PrimaryResult) -> None:
    unit = test.sigma**2 if test.test == "replicates" else 1.0
    what = "squared error of the law minus margin, in seed noise squared" if unit != 1.0 else test.quantity
    rows = {
        "primary test": f"{test.test}, {test.targets} {'targets' if unit != 1.0 else 'runs'}",
        what: test.estimate / unit,
        "its interval": f"{test.lower / unit:.3g} to {test.upper / unit:.3g}; as good is below {test.margin:g}",
    }
    if test.f is not None and test.p_value is not None:
        rows["F"] = f"{test.f:.3f}, p = {test.p_value:.2g} that the law has no error"
    show_record(rows, as_json=False)
    if test.kurtosis_high:
        note(f"heavy tails (excess kurtosis {test.excess_kurtosis:.1f}): the F test leans on normal noise")


def _print_scores(result: Check) -> None:
    if result.scores is None:
        return
    scores = result.scores
    show_record({"WIS": scores.wis, "CRPS": scores.crps, "mean error": scores.mean_error}, as_json=False)
    show_table(
        [
            {"interval": c.level, "observed": c.observed, "band from": c.band_lower, "to": c.band_upper}
            for c in scores.coverage
        ],
        title="coverage, with the registered joint forecast's 95 % band",
        as_json=False,
    )
    for trend in scores.trends:
        note(trend.text)


def _pairs(texts: list[str]) -> dict[str, str]:
    pairs = {}
    for text in texts:
        name, equals, rule = text.rpartition("=")
        if not equals or not name:
            raise ForecastError(f"--exclude takes RUN=RULE, got {text!r}")
        pairs[name] = rule
    return pairs
