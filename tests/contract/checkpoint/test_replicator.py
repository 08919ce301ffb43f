"""Checkpoints leave the node by themselves, over real HTTP."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.replicator import Replicator, TokenBucket
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve
from pipeline_runtime.model.ids import Seq
from tests.contract.checkpoint.services import KEY, breaking, serving, token
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica
from tests.waiting import PATIENCE_S, wait_until


def test_a_new_checkpoint_arrives_at_the_central_store_by_itself(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient,
) -> None:  # fmt: skip
    arrived: list[tuple[str, Seq, str]] = []
    replicator = Replicator(database, client, lambda *what: arrived.append(what))
    replicator.start()
    replica.commit()
    stored = checkpoint(database)
    replicator.offer(GROUP, stored.seq)
    wait_until(lambda: arrived)
    assert arrived == [(GROUP, 1, "central")]
    assert central.manifests(GROUP) == (stored,)
    replicator.close()


def test_a_central_store_that_was_away_gets_the_newest_checkpoint_when_it_is_back(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
) -> None:  # fmt: skip
    server = serve(chunk_service(central, KEY), "127.0.0.1", 0)
    server.close()
    arrived: list[Seq] = []
    replicator = Replicator(
        database, ChunkClient(server.url, token(), retry_s=0.1), lambda _, seq, __: arrived.append(seq)
    )
    replicator.start()
    for _ in range(3):
        replica.commit()
        replicator.offer(GROUP, checkpoint(database).seq)
    wait_until(lambda: replicator.error is not None)
    again = serve(chunk_service(central, KEY), "127.0.0.1", server.port)
    wait_until(lambda: arrived and replicator.error is None)
    assert arrived == [3]
    assert [found.seq for found in central.manifests(GROUP)] == [3]
    replicator.close()
    again.close()


def test_a_replicator_can_be_closed_while_the_other_side_is_away(
    replica: FakeReplica, checkpoint: Checkpoint, database: StateDatabase, server: Server
) -> None:
    server.close()
    tried = threading.Event()

    def token_for(scope: str) -> str:
        tried.set()
        return token(scope)

    replica.commit()
    # By itself it would go on trying for an hour.
    replicator = Replicator(database, ChunkClient(server.url, token_for, retry_s=3600), lambda *_: None)
    replicator.start()
    replicator.offer(GROUP, checkpoint(database).seq)
    assert tried.wait(PATIENCE_S)
    replicator.close(PATIENCE_S)
    assert not replicator._thread.is_alive()


def test_two_places_together_get_no_more_than_the_bandwidth_limit(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, tmp_path: Path,
) -> None:  # fmt: skip
    rate = 2_000_000
    replica.commit({f"{index}.sst": os.urandom(400_000) for index in range(10)})
    stored = checkpoint(database)
    with (
        StateDatabase(tmp_path / "state" / "backup") as backup,
        serving(chunk_service(backup, KEY)) as second,
        breaking(server.port, None, towards_service=True) as one,
        breaking(second.port, None, towards_service=True) as other,
    ):
        bucket = TokenBucket(rate, threading.Event().wait)
        replicators = [
            Replicator(database, ChunkClient(proxy.url, token()), lambda *_: None,
                       where=proxy.url, bytes_per_s=rate, bucket=bucket)
            for proxy in (one, other)
        ]  # fmt: skip
        started = time.monotonic()
        for replicator in replicators:
            replicator.offer(GROUP, stored.seq)
            replicator.start()
        wait_until(lambda: all(place.manifests(GROUP) for place in (backup, central)))
        took_s = time.monotonic() - started
        for replicator in replicators:
            replicator.close()
        assert backup.manifests(GROUP) == central.manifests(GROUP) == (stored,)
    passed = one.passed + other.passed
    assert passed > 8_000_000
    # One bundle (at most a second's worth) goes ahead of its time; headers and manifests do not count.
    assert passed - took_s * rate <= rate + 200_000


def test_the_bandwidth_limit_holds_on_average() -> None:
    now = [0.0]

    def wait(seconds: float) -> None:
        now[0] += seconds

    bucket = TokenBucket(1000, wait, lambda: now[0])
    for size in (500, 3000, 1, 499, 1000):
        bucket.take(size)
    bucket.take(0)
    assert now[0] == pytest.approx(5.0)
    TokenBucket(None, wait).take(10**12)
    assert now[0] == pytest.approx(5.0)
