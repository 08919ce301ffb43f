"""What a cut takes is what a real Spark query, with the session's real settings, restarts from."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.checkpoint.counting import KEYS, ROWS_PER_BATCH

PROJECT = Path(__file__).resolve().parents[3]


def run(phase: str, kind: str, replica: Path, work: Path, target: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.checkpoint.counting", phase, kind, replica, work, target],
        cwd=PROJECT, capture_output=True, text=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.mark.integration
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["aggregate", "keyed"])
def test_a_query_restarts_from_a_cut_of_a_running_one_as_if_it_had_never_moved(
    kind: str, tmp_path: Path
) -> None:
    origin, target, work = tmp_path / "origin" / "g1", tmp_path / "target" / "g1", tmp_path / "work"
    first = run("first", kind, origin, work, target)
    cuts = [event for event in first if event["event"] == "cut"]
    batches = {event["batch"]: event["counts"] for event in first if event["event"] == "batch"}
    taken = cuts[-1]
    assert len(cuts) == 8
    assert max(batches) > taken["batch"], "the query ran on while it was cut"
    for number in cuts:
        assert number["seq"] == number["batch"] + 1
        assert number["ends"] == {"in-0": number["seq"] * ROWS_PER_BATCH}

    # Only what a restart needs: the last batch's log entries, no state from before its snapshot.
    assert {path for path in taken["files"] if "/offsets/" in path or "/commits/" in path} == {
        f"spark/{log}/{taken['batch'] - back}" for log in ("offsets", "commits") for back in (0, 1)
    }
    versions = [int(found[1]) for path in taken["files"] if (found := re.search(r"/(\d+)_[^/]*\.", path))]
    assert max(versions) == taken["batch"] + 1
    assert any(path.endswith(".zip") for path in taken["files"]), "the test has seen a snapshot"
    assert min(versions) > 1, "and what lies before it was left out"

    again = run("again", kind, target, tmp_path / "work2", target)
    restarted = [event for event in again if event["event"] == "batch"]
    assert [event["batch"] for event in restarted[:6]] == [taken["batch"] + 1 + step for step in range(6)]
    for event in restarted:
        each = (event["batch"] + 1) * ROWS_PER_BATCH // KEYS
        assert event["counts"] == {f"k{key}": each for key in range(KEYS)}
