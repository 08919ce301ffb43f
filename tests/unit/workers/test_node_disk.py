"""Tests what a node keeps on its disk, and that only one process uses it."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from pipeline_runtime.model.desired import NodeDesired
from workers.lock import AlreadyRuns, lock
from workers.node.desired_store import DesiredStore
from workers.node.load import LoadMeter
from workers.node.runtime import LocalState


def test_the_desired_state_survives_and_is_private(tmp_path: Path) -> None:
    store = DesiredStore(tmp_path / "desired.json")
    assert store.load() is None
    desired = NodeDesired(node="edge-a", revision=7)
    store.save(desired)
    assert DesiredStore(tmp_path / "desired.json").load() == desired
    assert stat.S_IMODE(os.stat(tmp_path / "desired.json").st_mode) == 0o600


def test_a_damaged_desired_state_is_none_rather_than_a_crash(tmp_path: Path) -> None:
    (tmp_path / "desired.json").write_text('{"node": "edge-a", "revi')
    assert DesiredStore(tmp_path / "desired.json").load() is None


def test_a_half_fetched_generation_does_not_count(tmp_path: Path) -> None:
    local = LocalState(tmp_path, "d.power")
    assert local.generation() is None
    local.incoming(2).mkdir(parents=True)
    (local.root / "g1.txt").touch()
    assert local.generation() is None
    local.incoming(2).rename(local.at(2))
    local.at(1).mkdir()
    assert local.generation() == 2


def test_a_second_process_of_the_same_node_is_refused(tmp_path: Path) -> None:
    held = lock(tmp_path, "the node")
    with pytest.raises(AlreadyRuns, match="Stop that one first"):
        lock(tmp_path, "the node")
    held.close()
    lock(tmp_path, "the node").close()


def test_the_load_is_of_this_machine(tmp_path: Path) -> None:
    load = LoadMeter(tmp_path).measure()
    assert 0 <= load.cpu_ratio <= 1
    assert 0 < load.memory_bytes < load.memory_total_bytes
    assert 0 < load.disk_ratio < 1


def test_the_first_share_of_the_cpu_is_measured_and_not_a_zero(tmp_path: Path) -> None:
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            pass

    busy = threading.Thread(target=work)
    busy.start()
    try:
        assert LoadMeter(tmp_path).measure().cpu_ratio > 0
    finally:
        over.set()
        busy.join()
