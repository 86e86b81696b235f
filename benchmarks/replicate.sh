#!/usr/bin/env bash
# The replication, from nothing: pilot, fit, signed forecast, runs, check, pages. What is finished is never repeated.
#
#     bash benchmarks/replicate.sh            # hours; writes build/replication
#     SMOKE=1 bash benchmarks/replicate.sh    # the same steps on tiny studies, minutes; writes build/replication-smoke
#
# PLATOCAST: the command; JOBS: trainings at a time; OUT: where everything goes. The published study is reports/glyphs;
# this makes a second one, with its own key, seeds and verdict.
set -euo pipefail
cd "$(dirname "$0")/.."
platocast=${PLATOCAST:-platocast} jobs=${JOBS:-2} metric=mutual_knn_unseen
if [ -n "${SMOKE:-}" ]; then
    out=${OUT:-build/replication-smoke} pilot=data/studies/smoke-pilot.toml next=data/studies/smoke-targets.toml
else
    out=${OUT:-build/replication} pilot=data/studies/replication-pilot.toml next=data/studies/replication-targets.toml
fi
mkdir -p "$out"
entry=$out/log/0002-register.json key=$out/TEST-key

step() { printf '\n== %s\n' "$*"; }

step "Pilot runs"
"$platocast" launch "$pilot" --folder "$out/launched/pilot" --jobs "$jobs"
"$platocast" collect "$out/launched/pilot" --ledger "$out/pilot.jsonl"

step "Fit, and choose the law by the written rule"
[ -f "$out/fit.json" ] || "$platocast" fit "$out/pilot.jsonl" --metric "$metric" --out "$out/fit.json"
"$platocast" report "$out/fit.json" --runs "$out/pilot.jsonl" --out "$out/fit.html"

step "Sign the forecast of runs that do not exist"
"$platocast" targets "$next" --out "$out/targets.json"
[ -f "$key" ] || ssh-keygen -q -t ed25519 -N "" -C "TEST key of the replication, throw-away" -f "$key"
printf '"platocast replication (TEST)" %s\n' "$(cut -d' ' -f1,2 "$key.pub")" > "$out/allowed_signers"
[ -f "$entry" ] || "$platocast" register "$out/fit.json" "$out/targets.json" --log "$out/log" --key "$key" \
    --author "platocast replication (TEST)" --access pilot --known "$out/pilot.jsonl" --yes \
    --claim "On the glyph world, alignment of unseen scenes follows the law fitted to the pilot, also at four times its samples." \
    --refuted-by "The verdict WORSE THAN SEED NOISE over the repeated targets." \
    --exploratory "where the law errs: by good-view fraction, and within and beyond the pilot's samples"

step "Run what was forecast"
"$platocast" launch "$entry" --folder "$out/launched/targets" --jobs "$jobs" --key "$key"
"$platocast" collect "$out/launched/targets" --ledger "$out/outcomes.jsonl"

step "Check"
[ -f "$out/check.json" ] || "$platocast" check "$entry" --ledger "$out/outcomes.jsonl" --key "$key" --resolve \
    --allowed-signers "$out/allowed_signers" --out "$out/check.json"
"$platocast" verify "$out/log" --allowed-signers "$out/allowed_signers" --ledger "$out/outcomes.jsonl" \
    --data "$out/pilot.jsonl" --jobs "$out/launched/targets"
"$platocast" report "$out/check.json" --log "$out/log" --fit "$out/fit.json" --out "$out/index.html"
"$platocast" export "$out/check.json" --log "$out/log" --fit "$out/fit.json" --format svg --format csv --out "$out/tables"
