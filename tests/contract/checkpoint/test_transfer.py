"""Checkpoints between a node and a chunk service, over real HTTP."""

from __future__ import annotations

import os
import time
from pathlib import Path

import httpx
import pytest

from pipeline_runtime.checkpoint import access
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    AccessDenied,
    CheckpointMissing,
    ServiceUnavailable,
)
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.service import Server
from pipeline_runtime.checkpoint.transfer import fetch_from_any, push_checkpoint
from pipeline_runtime.model.ids import Seq
from tests.contract.checkpoint.services import breaking, token
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica, tree
from tests.waiting import PATIENCE_S


def test_a_checkpoint_travels_and_is_the_same_there(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({"a.sst": os.urandom(3_000_000), "b.sst": b"b" * 2_000_000})
    stored = checkpoint(central)
    seen: list[tuple[int, int]] = []
    fetched = fetch_from_any(
        [client], GROUP, None, tmp_path / "there", database, lambda done, total: seen.append((done, total))
    )
    assert fetched.manifest == stored
    assert fetched.damaged == ()
    assert 3_000_000 < fetched.bytes_fetched < 3_100_000
    assert seen[0][0] == 0
    assert seen[-1][0] == seen[-1][1] > 4_000_000
    there = tree(tmp_path / "there")
    assert there == {path: (replica.directory / path).read_bytes() for path in there}
    assert database.manifests(GROUP) == (stored,)


def test_a_second_fetch_brings_only_what_changed(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    state = {f"{index}.sst": os.urandom(100_000) for index in range(99)}
    replica.commit(state)
    checkpoint(central)
    fetch_from_any([client], GROUP, None, tmp_path / "first", database)
    replica.commit({**state, "99.sst": os.urandom(100_000)})
    checkpoint(central)
    second = fetch_from_any([client], GROUP, None, tmp_path / "second", database)
    assert 100_000 < second.bytes_fetched < 130_000


def test_an_older_checkpoint_can_be_asked_for_by_its_seq(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    for _ in range(3):
        replica.commit()
        checkpoint(central)
    assert [found.seq for found in client.checkpoints(GROUP)] == [3, 2, 1]
    fetched = fetch_from_any([client], GROUP, Seq(2), tmp_path / "there", database)
    assert fetched.manifest.seq == 2
    for nowhere, group in ((Seq(9), GROUP), (None, "nobody")):
        with pytest.raises(CheckpointMissing):
            fetch_from_any([client], group, nowhere, tmp_path / "no", database)
    assert not (tmp_path / "no").exists()


def test_a_damaged_chunk_falls_back_to_the_next_older_checkpoint(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit()
    first = checkpoint(central)
    replica.commit()
    second = checkpoint(central)
    lost = sorted(second.chunks - first.chunks)[0]
    family = central._groups[GROUP].family
    family[b"c" + bytes.fromhex(lost)] = b"\0rubbish"
    fetched = fetch_from_any([client], GROUP, None, tmp_path / "there", database)
    assert fetched.manifest == first
    assert fetched.damaged == (2,)
    assert central.missing(GROUP, [lost]) == (lost,), "so that the next checkpoint brings it again"


def test_a_chunk_damaged_here_is_fetched_anew(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit()
    stored = checkpoint(central)
    checkpoint(database)
    database._groups[GROUP].family[b"c" + bytes.fromhex(sorted(stored.chunks)[0])] = b"\0rubbish"
    fetched = fetch_from_any([client], GROUP, None, tmp_path / "there", database)
    assert (fetched.manifest, fetched.damaged) == (stored, ())


def test_a_fetch_that_breaks_goes_on_where_it_stopped(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({f"{index}.sst": os.urandom(900_000) for index in range(12)})
    stored = checkpoint(central)
    with breaking(server.port, 5_000_000) as proxy:
        client = ChunkClient(proxy.url, token(), retry_s=PATIENCE_S)
        fetched = fetch_from_any([client], GROUP, None, tmp_path / "there", database)
        client.close()
        assert proxy.broken == 1
    assert fetched.manifest == stored
    assert fetched.bytes_fetched < 12_500_000, "no chunk that arrived was fetched again"


def test_a_fetch_given_up_keeps_what_arrived(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({f"{index}.sst": os.urandom(900_000) for index in range(12)})
    checkpoint(central)
    # Less than any one of the parallel answers has: the one that breaks has not come to its end.
    with breaking(server.port, 3_000_000) as proxy:
        impatient = ChunkClient(proxy.url, token(), retry_s=0)
        with pytest.raises(ServiceUnavailable):
            fetch_from_any([impatient], GROUP, None, tmp_path / "there", database)
        impatient.close()
    assert not (tmp_path / "there").exists()
    again = fetch_from_any([client], GROUP, None, tmp_path / "there", database)
    assert 0 < again.bytes_fetched < 10_000_000


def test_a_push_that_breaks_off_leaves_no_part_of_a_checkpoint_and_goes_on_where_it_stopped(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({f"{index}.sst": os.urandom(900_000) for index in range(12)})
    stored = checkpoint(database)
    with breaking(server.port, 6_000_000, towards_service=True) as proxy:
        impatient = ChunkClient(proxy.url, token(), retry_s=0)
        with pytest.raises(ServiceUnavailable):
            push_checkpoint(impatient, stored, database)
        impatient.close()
        assert proxy.broken == 1
    assert central.manifests(GROUP) == ()
    sent = push_checkpoint(client, stored, database)
    assert 0 < sent < 8_000_000, "the bundle that had arrived was not sent again"
    assert fetch_from_any([client], GROUP, None, tmp_path / "there", database).manifest == stored


def test_a_push_ships_only_what_is_missing_and_survives_a_prune_in_between(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient,
) -> None:  # fmt: skip
    replica.commit({"a.sst": os.urandom(500_000)})
    first = checkpoint(database)
    assert push_checkpoint(client, first, database) > 500_000
    assert central.manifests(GROUP) == (first,)
    replica.commit()
    second = checkpoint(database)
    pruned: list[int] = []

    def prune_once(_: int) -> None:
        if not pruned:
            pruned.append(central.prune(GROUP, ()).chunks)

    sent = push_checkpoint(client, second, database, throttle=prune_once)
    assert pruned[0] > 0
    assert sent > 500_000, "the pruned chunks were sent again"
    assert central.manifests(GROUP) == (second,)


def test_a_manifest_of_another_group_or_with_missing_chunks_changes_nothing(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server,
) -> None:  # fmt: skip
    replica.commit()
    stored = checkpoint(database)
    headers = {"Authorization": f"Bearer {token()}"}

    def put(path: str, manifest: Manifest) -> httpx.Response:
        return httpx.put(f"{server.url}{path}", content=manifest.to_bytes(), headers=headers)

    assert put(f"/groups/other/checkpoints/{stored.seq}", stored).status_code == 400
    answer = put(f"/groups/{GROUP}/checkpoints/{stored.seq}", stored)
    assert (answer.status_code, set(answer.json()["missing"])) == (409, set(stored.chunks))
    tampered = stored.model_copy(update={"node": "x"})
    assert put(f"/groups/{GROUP}/checkpoints/{stored.seq}", tampered).status_code == 422
    assert central.manifests(GROUP) == ()


def test_a_place_that_refuses_does_not_keep_another_from_serving(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    """As a backup node whose clock is ahead does: to it, every token has expired."""
    replica.commit({"a.sst": b"state"})
    checkpoint(central)
    refused = ChunkClient(server.url, lambda scope: access.mint("wrong", scope, time.time() + 3600))
    fetched = fetch_from_any([refused, client], GROUP, None, tmp_path / "there", database)
    assert fetched.place == client.url
    with pytest.raises(AccessDenied):
        fetch_from_any([refused], "another", None, tmp_path / "none", database)
    refused.close()
