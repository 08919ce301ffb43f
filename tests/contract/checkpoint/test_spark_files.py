"""A snapshot has all files from which a real Spark query, with the session's real settings, can restart."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.contract.checkpoint.counting import KEYS, KINDS, ROWS_PER_BATCH

pytestmark = [pytest.mark.integration, pytest.mark.full, pytest.mark.timeout(900)]

PROJECT = Path(__file__).resolve().parents[3]


Events = list[dict[str, Any]]


def run(phase: str, replicas: Path, work: Path, targets: Path) -> Events:
    done = subprocess.run(
        [sys.executable, "-m", "tests.contract.checkpoint.counting", phase, replicas, work, targets],
        cwd=PROJECT, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> tuple[Events, Events]:
    """The events of a query while snapshots were taken, and of one started from the last snapshot."""
    root = tmp_path_factory.mktemp("snapshots")
    first = run("first", root / "origin", root / "work", root / "target")
    shutil.rmtree(root / "origin")  # as on another machine, nothing of it is there
    return first, run("again", root / "target", root / "work2", root / "unused")


def of(events: Events, kind: str, event: str) -> Events:
    return [one for one in events if (one["kind"], one["event"]) == (kind, event)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_snapshot_of_a_running_query_is_of_a_committed_batch_and_no_more_than_a_restart_needs(
    kind: str, events: tuple[Events, Events]
) -> None:
    snapshots = of(events[0], kind, "snapshot")
    assert len(snapshots) == 8
    for taken in snapshots:
        assert taken["seq"] == taken["batch"] + 1
        assert taken["ends"] == {"in-0": taken["seq"] * ROWS_PER_BATCH}
        assert {path for path in taken["files"] if "/offsets/" in path or "/commits/" in path} == {
            f"spark/{log}/{taken['batch'] - back}" for log in ("offsets", "commits") for back in (0, 1)
        }
        versions = [int(found[1]) for path in taken["files"] if (found := re.search(r"/(\d+)_[^/]*\.", path))]
        assert max(versions) == taken["batch"] + 1
    assert any(path.endswith(".zip") for path in snapshots[-1]["files"]), "Spark has taken one of its state"
    assert min(versions) > 1, "and what lies before it was left out"


@pytest.mark.parametrize("kind", KINDS)
def test_a_query_restarts_from_a_snapshot_as_if_it_had_never_moved(
    kind: str, events: tuple[Events, Events]
) -> None:
    taken = of(events[0], kind, "snapshot")[-1]
    ran = [event["batch"] for event in of(events[0], kind, "batch")]
    assert max(ran) > taken["batch"], "it ran on after the snapshot"
    restarted = of(events[1], kind, "batch")
    assert [event["batch"] for event in restarted[:6]] == [taken["batch"] + 1 + step for step in range(6)]
    for event in restarted:
        each = (event["batch"] + 1) * ROWS_PER_BATCH // KEYS
        assert event["counts"] == {f"k{key}": each for key in range(KEYS)}
