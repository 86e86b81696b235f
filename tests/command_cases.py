"""The commands `register`, `verify`, `log` and `check` as a person calls them, and the runs of their registration."""

import numpy as np
import pytest
from worlds_of_runs import hill_truth, run

from forecast.ledger import append_runs
from prereg.seeds import derived_seed
from prereg.statement import find_registration
from runner.cli import main

AUTHOR = "Ada <ada@example.org>"


def said(capsys, *words):
    """Exit code, standard output and standard error of one command."""
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    printed = capsys.readouterr()
    return stopped.value.code, printed.out, printed.err


def register(capsys, *more, log="log"):
    words = ["register", "fit.json", "targets.json", "--log", log, "--key", "key", "--author", AUTHOR, "--yes"]
    return said(capsys, *words, "--claim", "hill holds", "--exclude", "node-failure=the node died", *more)


def run_all(place, *, bias=0.0, skip=0):
    """Outcomes of the registration in log/0002, in runs.jsonl."""
    registration, rng = find_registration(place / "log" / "0002-register.json"), np.random.default_rng(3)
    rows = []
    for claim in registration.statement.targets:
        n, g = claim.design.settings["n_samples"], claim.design.settings["good_view_fraction"]
        for k in range(claim.replicates):
            one = run(f"{claim.target}-{k}", n, g, hill_truth(n, g) + bias + rng.normal(0, 0.002))
            fields = {"registration": registration.digest, "target": claim.target, "replicate": k}
            seed = derived_seed(registration.digest, claim.target, k)
            rows.append(type(one).model_validate(one.model_dump() | fields | {"seed": seed}))
    append_runs(place / "runs.jsonl", rows[skip:])
