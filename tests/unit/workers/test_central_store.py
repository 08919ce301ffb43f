"""The central store says once what is wrong with it, and is of use again."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.checkpoint.database import StateDatabase
from tests.ports import free_ports
from tests.unit.checkpoint.replicas import GROUP
from tests.unit.checkpoint.test_database import manifest
from workers.control.checkpoints.central import CentralStore


def test_a_damaged_central_store_is_replaced_and_told_once(tmp_path: Path) -> None:
    StateDatabase(tmp_path / "state").close()
    (tmp_path / "state" / "CURRENT").write_text("garbage")
    told: list[str] = []
    (port,) = free_ports(1)
    store = CentralStore(tmp_path, "key", "127.0.0.1", port, lambda *_: False, alert=told.append)
    store.start()
    store.database.put_chunk(GROUP, b"1")
    store.database.put_manifest(manifest(b"1"))
    store._changed()
    store.close()
    assert len(told) == 1
    assert "set aside as state.damaged-" in told[0]


def test_it_prunes_by_its_policy_and_drops_what_nobody_will_ask_for(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    store = CentralStore(tmp_path, "key", "127.0.0.1", port, lambda group, _: group == "d.ended")
    for seq in range(1, 9):
        store.database.put_manifest(manifest(seq=seq))
    store.database.put_manifest(manifest(group="d.ended"))
    store._tend()
    assert [held.seq for held in store.database.manifests(GROUP)] == [8, 7, 6, 5, 4], "all are old"
    assert store.database.manifests("d.ended") == ()
    store.close()
