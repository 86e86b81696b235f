#!/usr/bin/env bash
# stop-slurm.sh DIR      end exactly what start-slurm.sh DIR started, jobs included, and nothing else.
# Its log, state and data base stay in DIR (a later start goes on with them); rm -rf DIR to forget them.
set -uo pipefail
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: $0 DIR" >&2; exit 2; }
D=$(cd "$1" && pwd -P); export SLURM_CONF=$D/etc/slurm.conf
started() { awk '{sub(/^.*\) /,""); print $20}' "/proc/$1/stat" 2>/dev/null; }
alive() { [ -n "$2" ] && [ "$(started "$1")" = "$2" ] && [ "$(awk '{sub(/^.*\) /,""); print $1}' "/proc/$1/stat" 2>/dev/null)" != Z ]; }
stray() {  # step daemons of this cluster, and whatever its jobs left: known by SLURM_CONF in their environment
  local p e
  for p in /proc/[0-9]*; do
    e=$(tr '\0' '\n' <"$p/environ" 2>/dev/null) || continue
    grep -qxF "SLURM_CONF=$SLURM_CONF" <<<"$e" || continue
    if [ "$(cat "$p/comm" 2>/dev/null)" = slurmstepd ] || grep -q '^SLURM_JOB_ID=' <<<"$e"; then
      [ "${p#/proc/}" = $$ ] || echo "${p#/proc/}"; fi
  done 2>/dev/null
}
if [ ! -e "$D/pids" ]; then echo "nothing recorded as started in $D"; exit 0; fi
# 1. the jobs, through SLURM if it still answers
if timeout 5 scontrol ping 2>/dev/null | grep -q UP; then
  ids=$(timeout 5 squeue -h -a -o %A 2>/dev/null | sort -u)
  if [ -n "$ids" ]; then timeout 20 scancel -f $ids 2>/dev/null
    for _ in $(seq 100); do [ -z "$(timeout 5 squeue -h -a -o %A 2>/dev/null)" ] && break; sleep 0.1; done; fi
fi
# 2. the daemons, last started first
for pass in TERM KILL; do
  while read -r n p s; do alive "$p" "$s" || continue
    kill -$pass "$p" 2>/dev/null
    for _ in $(seq 300); do alive "$p" "$s" || break; sleep 0.1; done
  done < <(tac "$D/pids")
done
# 3. what the jobs left
for sig in TERM KILL; do left=$(stray); [ -z "$left" ] && break; kill -$sig $left 2>/dev/null; sleep 0.5; done
if grep -qF "# start-slurm.sh $D" /etc/hosts; then hosts=$(grep -vF "# start-slurm.sh $D" /etc/hosts); echo "$hosts" >/etc/hosts; fi
rc=0
while read -r n p s; do if alive "$p" "$s"; then echo "$n ($p) is still alive" >&2; rc=1; fi; done <"$D/pids"
[ -z "$(stray)" ] || { echo "still alive: $(stray)" >&2; rc=1; }
[ $rc = 0 ] && rm -f "$D/pids" && echo "SLURM of $D is down"
exit $rc
