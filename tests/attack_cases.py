"""An honest log with runs and data, and what an author can do to it."""

import json
import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
from local_authority import make_authority, serving
from registration_cases import make_key
from worlds_of_runs import hill_truth, run, simulated_runs

from forecast.files import sha256_hex
from forecast.fitting import fit
from forecast.ledger import append_runs
from forecast.prediction import baseline_predictions, predict_joint
from forecast.reading import read_runs
from forecast.records import Run, Target
from prereg.check import check
from prereg.entry import encode, read_entry
from prereg.job_files import job_files
from prereg.log import Log, signature_path
from prereg.order import read_sacct
from prereg.registering import body_of, forecast_targets, state
from prereg.resolving import resolve
from prereg.seeds import derived_seed
from prereg.signature import public_key_of, sign
from prereg.stamping import stamp, token_files
from prereg.statement import find_registration
from prereg.terms import Terms
from prereg.time import Authority
from prereg.verify import verify_log

AUTHOR = "Ada <ada@example.org>"
SACCT_HEADER = "JobID|JobName|Submit\n"


@dataclass
class Case:
    """An honest log with everything that a verifier needs."""

    base: Path
    data: list[Run]

    @property
    def log(self):
        return self.base / "log"

    @property
    def key(self):
        return self.base / "key"

    @property
    def registration(self):
        return find_registration(self.log / "0002-register.json")

    @property
    def runs(self):
        return read_runs(self.base / "runs.jsonl")

    @property
    def jobs(self):
        return job_files(self.base / "launched")

    def sacct(self, seconds_after=1000):
        """SLURM's accounting if the jobs were submitted so long after the registration was stamped."""
        moment = int(datetime.now(UTC).timestamp()) + seconds_after
        path = self.base / "sacct.txt"
        path.write_text(SACCT_HEADER + f"7|pc-{self.registration.digest[:16]}-array|{moment}\n8|other|5\n")
        return read_sacct(path)

    def verify(self, **options):
        given = {
            "allowed_signers": self.base / "allowed_signers",
            "authority_ca": self.base / "ca.pem",
            "head": (self.base / "head").read_text(),
            "today": date(2026, 12, 2),
        }
        return verify_log(self.log, **(given | options))


@contextmanager
def clock_office(base):
    """A time authority of our own, answering, its folder under `base`."""
    folder = make_authority(base / "office", name="Clock Office")
    with serving(folder) as url:
        yield Authority("office", url, (folder / "ca.pem").read_bytes())


def honest_case(base, authority):
    """Everything as it should be: registered, stamped, launched, run, resolved."""
    key = make_key(base / "key")
    data = simulated_runs()
    fitted = fit(data, metric="mutual_knn", law="hill", rng=np.random.default_rng(7), seed=7)
    fitted.save(base / "fit.json")
    (base / "ca.pem").write_bytes(authority.certificates)
    (base / "allowed_signers").write_text(f'"{AUTHOR}" {public_key_of(key).line}\n')
    log = Log.create(base / "log", author=AUTHOR, key=key)
    signed = log.append("register", body_of(stated(fitted, base)), key=key)
    stamp(log.folder, [authority], key=key)
    registration = find_registration(signed.path)
    jobs = []
    for claim in registration.statement.targets:
        for k in range(claim.replicates):
            job = {"target": claim.target, "replicate": k, "seed": derived_seed(signed.digest, claim.target, k)}
            spec = base / "launched" / "runs" / f"{claim.target}-{k}" / "spec.json"
            spec.parent.mkdir(parents=True)
            spec.write_text(json.dumps(job | {"registration": signed.digest}))
            jobs.append(job | {"spec_sha256": sha256_hex(spec.read_bytes())})
    log.append("launch", {"registration": signed.digest, "jobs": jobs, "code_hash": "23" * 32}, key=key)
    append_runs(base / "runs.jsonl", ran(registration))
    result = check(
        registration, read_runs(base / "runs.jsonl"), rng=np.random.default_rng(0), as_of=date(2026, 12, 2), final=True
    )
    last = resolve(log.folder, result, ledger=base / "runs.jsonl", key=key)
    stamp(log.folder, [authority], key=key)
    (base / "head").write_text(last.digest)
    return Case(base, data)


def stated(fitted, base, **terms):
    targets = [
        Target(target=f"g{int(100 * g):03d}-n{n}", design=run("x", n, g, 0.1).design, replicates=2)
        for g in (0.1, 0.6, 0.9)
        for n in (24_000, 96_000, 700_000)
    ]
    rng = np.random.default_rng(1)
    return state(
        fitted,
        (base / "fit.json").read_bytes(),
        forecast_targets(fitted, targets, {}, rng),
        joint=predict_joint(fitted, targets, rng, 1000),
        baselines=baseline_predictions(fitted, targets),
        terms=Terms(claim="it holds", deadline="2999-12-31", code_hash="23" * 32, **terms),
        rng=rng,
    )


def ran(registration, rng=None):
    """Runs that follow the truth, with the seeds that the registration gives."""
    rng = rng or np.random.default_rng(11)
    rows = []
    for claim in registration.statement.targets:
        settings = claim.design.settings
        for replicate in range(claim.replicates):
            value = hill_truth(settings["n_samples"], settings["good_view_fraction"]) + rng.normal(0, 0.002)
            plain = run("x", settings["n_samples"], settings["good_view_fraction"], value)
            rows.append(
                changed(
                    plain,
                    run_id=f"{claim.target}-{replicate}",
                    registration=registration.digest,
                    target=claim.target,
                    replicate=replicate,
                    seed=derived_seed(registration.digest, claim.target, replicate),
                    provenance={"code_hash": "23" * 32, "job_id": f"7_{len(rows)}"},
                )
            )
    return rows


def changed(one, **fields):
    return type(one).model_validate(one.model_dump() | fields)


def copied(case, base):
    """A copy of `case` that may be damaged."""
    shutil.copytree(case.base, base / "copy")
    return Case(base / "copy", case.data)


def failures(report):
    return [finding.text for finding in report.findings if finding.level == "failed"]


def rewrite_from(case, number, change, *, key=None, author=None):
    """What the author can always do: change an entry and sign it and all later ones again, tokens dropped."""
    log, key = Log(case.log), key or case.key
    for token in token_files(case.log):
        token.path.unlink()
    entries = [(name, read_entry((case.log / name.text).read_bytes())) for name in log.names()]
    head = None
    for name, entry in entries:
        path = case.log / name.text
        if name.kind == "stamp":
            entry = changed(entry, body={"tokens": []})
        if name.seq == number:
            entry = change(entry)
        if name.seq >= number:
            entry = changed(
                entry,
                previous=head and head.digest,
                previous_signature=head and head.signature_digest,
                author=author or entry.author,
            )
            path.write_bytes(encode(entry))
            signature_path(path).write_bytes(sign(path.read_bytes(), key))
        head = log.read(name)
