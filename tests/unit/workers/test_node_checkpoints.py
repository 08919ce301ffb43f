"""A node's checkpoints over real HTTP and RocksDB: two places, damage, retention of others' groups."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from pipeline_runtime.checkpoint import access, store
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import CheckpointMissing, ServiceUnavailable, SnapshotFailed
from pipeline_runtime.checkpoint.growing import GrowingFiles
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve
from pipeline_runtime.model.desired import (
    BackupPlace,
    CheckpointSource,
    ClaimOrder,
    DesiredReplica,
    NodeDesired,
    Role,
)
from pipeline_runtime.model.ids import Epoch, Seq
from pipeline_runtime.model.spec import GroupSpec
from tests.unit.checkpoint.replicas import FakeReplica, tree
from tests.waiting import wait_until
from workers.messages import CENTRAL
from workers.node import checkpoints as node_checkpoints
from workers.node.checkpoints import NodeCheckpoints

KEY = "key"
SPEC = GroupSpec(deployment="d", pipeline="p", group="power", elements=())
AWAY = "http://127.0.0.1:9"


class Place:
    """A chunk service with a database of its own, that may go away and come back."""

    def __init__(self, directory: Path) -> None:
        self.database = StateDatabase(directory, grace_s=0)
        self.server: Server = serve(chunk_service(self.database, KEY), "127.0.0.1", 0)
        self.url = self.server.url

    def seqs(self) -> list[int]:
        return [manifest.seq for manifest in self.database.manifests(SPEC.id)]

    def go_away(self) -> None:
        self.server.close()

    def come_back(self) -> None:
        self.server = serve(chunk_service(self.database, KEY), "127.0.0.1", self.server.port)

    def close(self) -> None:
        self.server.close()
        self.database.close()


@pytest.fixture
def places(tmp_path: Path) -> Iterator[dict[str, Place]]:
    made = {name: Place(tmp_path / name / "state") for name in ("central", "edge-b", "edge-c")}
    yield made
    for place in made.values():
        place.close()


@pytest.fixture
def replica(tmp_path: Path) -> FakeReplica:
    return FakeReplica(tmp_path / "edge-a" / "replicas" / SPEC.id / "g1")


@pytest.fixture
def open_node(tmp_path: Path, places: dict[str, Place]) -> Iterator[Callable[..., NodeCheckpoints]]:
    with ExitStack() as opened:

        def open_(name: str = "edge-a", central: str | None = None) -> NodeCheckpoints:
            url = central or places["central"].url
            made = NodeCheckpoints(name, tmp_path / name, url, KEY, lambda: None)
            opened.callback(made.close)
            made.start()
            return made

        yield open_


def desired(
    *, backup: BackupPlace | None = None, keeps: tuple[str, ...] = (), runs: bool = True
) -> NodeDesired:
    replica = DesiredReplica(spec=SPEC, role=Role.OWNER, backup=backup)
    return NodeDesired(node="edge-a", revision=1, replicas=(replica,) if runs else (), keeps=keeps)


def backup(places: dict[str, Place], name: str) -> BackupPlace:
    return BackupPlace(node=name, url=places[name].url)


def take(node: NodeCheckpoints, replica: FakeReplica) -> int:
    replica.commit()
    taken = node.take(SPEC, Epoch(1), replica.directory, None)
    assert taken is not None
    return taken.seq


def source(seq: int | None = None, *, fallbacks: tuple[str, ...] = ()) -> CheckpointSource:
    token = access.mint(KEY, access.group_read(SPEC.id), time.time() + 60)
    return CheckpointSource(
        url=CENTRAL, token=token, seq=None if seq is None else Seq(seq), fallbacks=fallbacks
    )


# two places


def test_a_checkpoint_goes_to_the_central_store_and_to_the_backup_node(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica
) -> None:
    node = open_node()
    node.direct(desired(backup=backup(places, "edge-b")))
    seq = take(node, replica)
    wait_until(lambda: node.where(SPEC.id, Seq(seq)) == ("edge-a", "central", "edge-b"))
    assert places["central"].seqs() == places["edge-b"].seqs() == [1]
    assert places["edge-c"].seqs() == []


def test_another_backup_node_gets_at_once_what_is_there(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica
) -> None:
    node = open_node()
    node.direct(desired(backup=backup(places, "edge-b")))
    seq = take(node, replica)
    wait_until(lambda: "edge-b" in node.where(SPEC.id, Seq(seq)))
    node.direct(desired(backup=backup(places, "edge-c")))
    wait_until(lambda: node.where(SPEC.id, Seq(seq)) == ("edge-a", "central", "edge-c"))
    node.direct(desired())
    assert node.where(SPEC.id, Seq(seq)) == ("edge-a", "central")


def test_a_place_that_is_away_holds_up_no_other_and_gets_the_newest_when_it_is_back(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica
) -> None:
    places["central"].go_away()
    node = open_node()
    node.direct(desired(backup=backup(places, "edge-b")))
    for _ in range(3):
        seq = take(node, replica)
    wait_until(lambda: node.where(SPEC.id, Seq(seq)) == ("edge-a", "edge-b"))
    places["central"].come_back()
    wait_until(lambda: places["central"].seqs()[:1] == [seq])


# restoring


def test_a_restoration_takes_the_newest_of_all_places(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica, tmp_path: Path
) -> None:
    owner = open_node()
    owner.direct(desired(backup=backup(places, "edge-b")))
    take(owner, replica)
    wait_until(lambda: len(owner.where(SPEC.id, Seq(1))) == 3)
    places["central"].go_away()
    take(owner, replica)
    wait_until(lambda: places["edge-b"].seqs() == [2, 1])
    places["central"].come_back()
    owner.close()
    notes: list[str] = []
    target = open_node("edge-c-node")
    fallbacks = (places["edge-b"].url,)
    target.fetch(SPEC.id, source(fallbacks=fallbacks), tmp_path / "got", notes.append)
    assert places["edge-b"].url in notes[-1]
    assert (tmp_path / "got" / "spark" / "commits" / "1").exists(), "seq 2 is batch 1"
    target.fetch(SPEC.id, source(1, fallbacks=fallbacks), tmp_path / "older", notes.append)
    assert not (tmp_path / "older" / "spark" / "commits" / "1").exists()


def test_with_the_central_store_away_the_backup_node_serves(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(node_checkpoints, "ASKED_S", 0.1)
    monkeypatch.setattr(node_checkpoints, "ASKED_ALONE_S", 0.1)
    owner = open_node()
    owner.direct(desired(backup=backup(places, "edge-b")))
    seq = take(owner, replica)
    wait_until(lambda: len(owner.where(SPEC.id, Seq(seq))) == 3)
    target = open_node("edge-x", AWAY)
    with pytest.raises(ServiceUnavailable):
        target.fetch(SPEC.id, source(), tmp_path / "no", lambda _: None)
    assert target.fetch(SPEC.id, source(fallbacks=(places["edge-b"].url,)), tmp_path / "got", print) > 0
    got = tree(tmp_path / "got")
    assert got == {path: (replica.directory / path).read_bytes() for path in got}


def test_a_damaged_copy_is_taken_from_the_other_place_before_an_older_one(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica, tmp_path: Path
) -> None:
    owner = open_node()
    owner.direct(desired(backup=backup(places, "edge-b")))
    take(owner, replica)
    wait_until(lambda: len(owner.where(SPEC.id, Seq(1))) == 3)
    take(owner, replica)
    wait_until(lambda: len(owner.where(SPEC.id, Seq(2))) == 3)
    central = places["central"].database
    newest, older = central.manifests(SPEC.id)
    lost = sorted(newest.chunks - older.chunks)[0]
    central._groups[SPEC.id].family[b"c" + bytes.fromhex(lost)] = b"\0rubbish"
    target = open_node("edge-x")
    target.fetch(SPEC.id, source(fallbacks=(places["edge-b"].url,)), tmp_path / "got", lambda _: None)
    assert (tmp_path / "got" / "spark" / "commits" / "1").exists()


def test_a_node_that_is_the_backup_itself_needs_nobody(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica, tmp_path: Path
) -> None:
    node = open_node()
    take(node, replica)
    assert node.fetch(SPEC.id, source(), tmp_path / "got", lambda _: None) == 0
    with pytest.raises(CheckpointMissing):
        node.fetch(SPEC.id, source(77), tmp_path / "no", lambda _: None)


def test_of_a_sinks_file_the_checkpoint_holds_what_was_committed(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica, tmp_path: Path
) -> None:
    node = open_node()
    replica.commit()
    replica.put("elements/out/power.csv", b"a\r\n1\r\nnot yet")
    growing = GrowingFiles()
    growing.note(Seq(1), {"elements/out/power.csv": 6})
    node.take(SPEC, Epoch(1), replica.directory, growing)
    node.fetch(SPEC.id, source(), tmp_path / "got", lambda _: None)
    assert (tmp_path / "got/elements/out/power.csv").read_bytes() == b"a\r\n1\r\n"


# what is kept


def test_checkpoints_held_for_others_are_pruned_and_survive_the_end_of_a_replica_here(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = open_node()
    node.direct(desired(runs=False, keeps=(SPEC.id,)))
    for _ in range(6):
        take(node, replica)
    node.forget(SPEC.id)
    assert [held.seq for held in node.database.manifests(SPEC.id)] == [6, 5, 4]
    node.direct(desired(runs=False))
    node._tend()
    assert node.database.manifests(SPEC.id), "not at once: the wish may come back"
    monkeypatch.setattr(node_checkpoints, "UNWANTED_S", 0.0)
    node._tend()
    assert node.database.manifests(SPEC.id) == ()


# what goes wrong


def test_a_database_damaged_while_it_runs_costs_no_checkpoint(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica, tmp_path: Path
) -> None:
    state = tmp_path / "edge-a" / "state"
    first = open_node()
    take(first, replica)
    first.close()
    StateDatabase(state).close()  # its log becomes tables
    for table in state.glob("*.sst"):
        content = table.read_bytes()
        table.write_bytes(bytes(byte ^ 0xFF for byte in content[:200]) + content[200:])
    node = open_node()
    assert take(node, replica) == 2
    assert [held.seq for held in node.database.manifests(SPEC.id)] == [2]
    (alert,) = [text for text in node.alerts() if "set aside" in text]
    assert "Running elements are not affected" in alert
    assert len(list(state.parent.glob("state.damaged-*"))) == 1


def test_what_keeps_a_checkpoint_from_being_taken_is_told_until_one_is(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica, tmp_path: Path
) -> None:
    node = open_node()
    node.direct(desired())
    (tmp_path / "edge-a" / "snapshots").write_text("a file where the directory of snapshots must be")
    with pytest.raises((SnapshotFailed, OSError)):
        take(node, replica)
    (alert,) = node.alerts()
    assert alert.startswith("No checkpoint of p/power: ")
    (tmp_path / "edge-a" / "snapshots").unlink()
    take(node, replica)
    assert node.alerts() == ()


def test_a_file_that_cannot_be_read_is_named_in_the_same_words_each_time(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = open_node()
    node.direct(desired())
    replica.put("elements/out/power.csv", b"a\r\n")

    def unreadable(path: Path, mode: str) -> object:
        if path.name == "power.csv":
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return open(path, mode)

    monkeypatch.setattr(store, "open", unreadable, raising=False)
    told = set()
    for _ in range(2):
        with pytest.raises((SnapshotFailed, OSError)):
            take(node, replica)
        told.update(node.alerts())
    (alert,) = told
    assert alert.startswith("No checkpoint of p/power: elements/out/power.csv cannot be read: Input/output")


def test_a_disk_that_fills_stops_checkpoints_alone(
    open_node: Callable[..., NodeCheckpoints], replica: FakeReplica
) -> None:
    node = open_node()
    node.direct(desired())
    take(node, replica)
    node.database.reserve_bytes = 1 << 60
    with pytest.raises(Exception, match="MB left"):
        take(node, replica)
    assert "MB left" in node.alerts()[0]
    assert node.where(SPEC.id, Seq(1))[0] == "edge-a"
    node.database.reserve_bytes = 0
    assert take(node, replica) == 3
    assert node.alerts() == ()


def test_what_had_not_arrived_before_a_restart_is_sent_after_it(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica
) -> None:
    places["central"].go_away()
    first = open_node()
    first.direct(desired())
    seq = take(first, replica)
    first.close()
    places["central"].come_back()
    second = open_node()
    second.direct(desired())
    wait_until(lambda: places["central"].seqs() == [seq])


def test_what_a_rewind_has_undone_goes_from_every_place_and_is_never_fetched(
    open_node: Callable[..., NodeCheckpoints], places: dict[str, Place], replica: FakeReplica, tmp_path: Path
) -> None:
    old, stale = open_node(), open_node("edge-x")
    place = backup(places, "edge-b")
    old.direct(desired(backup=place))
    for _ in range(3):
        seq = take(old, replica)
        wait_until(lambda seq=seq: len(old.where(SPEC.id, Seq(seq))) == 3)
    assert stale.fetch(SPEC.id, source(), tmp_path / "undone", lambda _: None) > 0
    # The owner starts again at 1, under epoch 2, and goes on to 2.
    old.fetch(SPEC.id, source(1), tmp_path / "again", lambda _: None)
    order = ClaimOrder(id="back", over=Epoch(1), rewind=Seq(1))
    rewound = DesiredReplica(spec=SPEC, role=Role.OWNER, order=order, backup=place)
    old.direct(NodeDesired(node="edge-a", revision=2, replicas=(rewound,)))
    wait_until(lambda: places["central"].seqs() == places["edge-b"].seqs() == [1])
    assert [held.seq for held in old.database.manifests(SPEC.id)] == [1]
    again = FakeReplica(tmp_path / "edge-a" / "replicas" / SPEC.id / "g2")
    again.commit()
    again.commit()
    taken = old.take(SPEC, Epoch(2), again.directory, None)
    assert taken is not None
    wait_until(lambda: places["central"].seqs() == places["edge-b"].seqs() == [2, 1])
    old.direct(NodeDesired(node="edge-a", revision=3, replicas=(rewound,)))
    assert [held.seq for held in old.database.manifests(SPEC.id)] == [2, 1], "what is new is not undone"
    # One that still holds 3 of the undone run takes 2 all the same.
    assert [held.seq for held in stale.database.manifests(SPEC.id)] == [3]
    stale.fetch(SPEC.id, source(), tmp_path / "newest", lambda _: None)
    assert not (tmp_path / "newest" / "spark" / "commits" / "2").exists()
