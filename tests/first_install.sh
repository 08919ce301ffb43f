#!/usr/bin/env bash
# README's two commands as a new user types them: in an empty directory, with empty caches, until the demo pipeline
# runs behind the printed login; then Ctrl-C. Prints how long each part took. Run by hand (docs/how-to/testing.md):
#
#   tests/first_install.sh [repository]      default: what is committed here
#
# Only settings that the caller exports (say FOGLINE_PORT, when the usual ports are taken) reach Fogline.
set -euo pipefail
repository=${1:-$(cd "$(dirname "$0")/.." && pwd)}
work=$(mktemp -d "${TMPDIR:-/tmp}/fogline-first-install-XXXXXX")
export XDG_CACHE_HOME=$work/cache PIP_CACHE_DIR=$work/cache/pip npm_config_cache=$work/cache/npm
output=$work/output.txt
started=$SECONDS
session=
unset MAKEFLAGS MAKELEVEL MFLAGS

say() { printf '%4d s  %s\n' $((SECONDS - started)) "$*"; }
fail() { say "FAILED: $*"; tail -n 60 "$output" >&2; exit 1; }
running() { [ -n "$session" ] && pgrep -s "$session" >/dev/null; }
stop() { # as Ctrl-C does: the signal goes to all that run in the foreground
  [ -n "$session" ] || return 0
  kill -INT -- "-$session"
  for _ in $(seq 90); do running || { session=; return 0; }; sleep 1; done
  return 1
}
# What failed is left to be looked at, but nothing goes on running.
trap 'running && { stop || pkill -KILL -s "$session"; }' EXIT
# until_said <text> <seconds>
until_said() {
  for _ in $(seq "$2"); do
    if grep -qF -- "$1" "$output"; then say "said: $1"; return; fi
    running || fail "make up has ended before it said: $1"
    sleep 1
  done
  fail "not said within $2 s: $1"
}

cd "$work"
git clone --quiet "$repository" fogline && cd fogline
say "cloned $(git rev-parse --short HEAD) into $work"
setsid make up >"$output" 2>&1 </dev/null &
session=$!
until_said "Installing the Python packages" 60
until_said "Building the browser code" 1800
until_said "Fogline runs at" 900
.venv/bin/python - <<'PYTHON' || fail "the demo pipeline does not run behind the printed login"
import os
import pathlib
import time

from tests.running import RunningFogline

fogline = RunningFogline(pathlib.Path(os.environ.get("FOGLINE_DATA", ".fogline")))
fogline.url = f"http://127.0.0.1:{os.environ.get('FOGLINE_PORT', '8000')}"
with fogline.client() as client:
    deadline = time.monotonic() + 600
    while True:
        answer = client.get("/api/v1/pipelines/machine-power/elements")
        elements = answer.json() if answer.status_code == 200 else []
        # A view runs in the browser: it commits nothing.
        if elements and all(element["status"] == "view" or element["seq"] > 0 for element in elements):
            break
        assert time.monotonic() < deadline, answer.text
        time.sleep(1)
PYTHON
say "the demo pipeline runs, all of its elements have committed"
stop || fail "Ctrl-C did not end it"
say "stopped; $(du -sh "$work" | cut -f1) were installed and fetched"
trap - EXIT
rm -rf "$work"
