"""Fixtures: replica directories as Spark leaves them (tests/contract/checkpoint checks that it does)."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.snapshot import take_snapshot
from pipeline_runtime.checkpoint.store import store
from pipeline_runtime.model.ids import Epoch

GROUP = "d1.power"


class FakeReplica:
    """Writes what a query with one keyed operator writes: batch by batch, snapshots on demand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.batch = -1
        self.put("spark/metadata", b'{"id":"q"}')
        self.put("spark/.metadata.crc", b"crc")
        self.put("spark/sources/0/0", b"v1\n{}")
        self.put("spark/state/0/_metadata/metadata", b"v1\n{}")
        self.put("replica.json", b'{"origin": 0}')

    def put(self, path: str, content: bytes) -> None:
        target = self.directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        hidden = target.with_name(f".{target.name}.tmp")
        hidden.write_bytes(content)
        hidden.replace(target)

    def plan(self) -> int:
        """offsets/N and the state of the running batch, without ends/N and commits/N."""
        batch = self.batch + 1
        offset = json.dumps({"token": batch + 1})
        self.put(f"spark/offsets/{batch}", f"v1\n{{}}\n{offset}".encode())
        self.put(f"spark/state/0/0/{batch + 1}_id{batch + 1}.changelog", b"changes %d" % batch)
        return batch

    def commit(self, snapshot_of: dict[str, bytes] | None = None) -> None:
        batch = self.plan()
        if snapshot_of is not None:
            self.snapshot(batch + 1, f"id{batch + 1}", snapshot_of)
        seq = batch + 1
        end = json.dumps({"seq": seq, "ends": {"in-0": 10 * seq}, "batch_time": 1000 * seq})
        self.put(f"spark/ends/{batch}", end.encode())
        self.finish(batch)
        self.batch = batch

    def finish(self, batch: int) -> None:
        """As Spark also does with one that was let go."""
        ids = json.dumps({"nextBatchWatermarkMs": 0, "stateUniqueIds": {"0": [[f"id{batch + 1}"]]}})
        self.put(f"spark/commits/{batch}", f"v2\n{ids}".encode())

    def snapshot(self, version: int, unique_id: str, ssts: dict[str, bytes]) -> None:
        for name, content in ssts.items():
            self.put(f"spark/state/0/0/SSTs/{name}", content)
        body = json.dumps({"sstFiles": [{"localFileName": "x", "dfsSstFileName": name} for name in ssts]})
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as writer:
            writer.writestr("metadata", f"v1\n{body}")
        self.put(f"spark/state/0/0/{version}_{unique_id}.zip", archive.getvalue())


@pytest.fixture
def replica(tmp_path: Path) -> FakeReplica:
    return FakeReplica(tmp_path / "replicas" / GROUP / "g1")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


@pytest.fixture
def database(tmp_path: Path) -> Iterator[StateDatabase]:
    with StateDatabase(tmp_path / "state" / "local", grace_s=0) as opened:
        yield opened


@pytest.fixture
def central(tmp_path: Path) -> Iterator[StateDatabase]:
    with StateDatabase(tmp_path / "state" / "central", grace_s=0) as opened:
        yield opened


Checkpoint = Callable[..., Manifest]


@pytest.fixture
def checkpoint(replica: FakeReplica, work: Path) -> Checkpoint:
    """Takes a snapshot of the replica and stores it."""

    def take(
        into: StateDatabase, now_ms: int = 0, epoch: int = 1, growing: GrowingFiles | None = None
    ) -> Manifest:
        with take_snapshot(replica.directory, work, growing) as taken:
            return store(
                taken, into, group=GROUP, epoch=Epoch(epoch), version="1", node="edge-a", now_ms=now_ms
            )

    return take


def tree(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }
