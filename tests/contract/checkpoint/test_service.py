"""Over real HTTP: a chunk service, its client, the replicator, files."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette

from pipeline_runtime.checkpoint import access, chunks
from pipeline_runtime.checkpoint.client import ChunkClient
from pipeline_runtime.checkpoint.database import StateDatabase
from pipeline_runtime.checkpoint.errors import (
    AccessDenied,
    CheckpointDamaged,
    CheckpointMissing,
    ServiceUnavailable,
)
from pipeline_runtime.checkpoint.files import FileCache, FileStore
from pipeline_runtime.checkpoint.manifest import Manifest
from pipeline_runtime.checkpoint.replicator import Replicator, TokenBucket
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve
from pipeline_runtime.checkpoint.transfer import fetch_checkpoint, push_checkpoint
from pipeline_runtime.model.ids import Seq
from tests.unit.checkpoint.replicas import GROUP, Checkpoint, FakeReplica, tree

KEY = "key"


def token(scope: str = "*") -> str:
    return access.mint(KEY, scope, time.time() + 60)


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


@contextmanager
def serving(app: Starlette) -> Iterator[Server]:
    running = serve(app, "127.0.0.1", 0)
    try:
        yield running
    finally:
        running.close()


@pytest.fixture
def server(central: StateDatabase, files: FileStore) -> Iterator[Server]:
    with serving(chunk_service(central, KEY, files)) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[ChunkClient]:
    opened = ChunkClient(server.url, token(), retry_s=5)
    yield opened
    opened.close()


class BreakingProxy:
    """TCP between client and service; breaks the connection after `budget` bytes towards the client, or
    the service. `passed`: bytes in that direction."""

    def __init__(self, port: int, budget: int | None, towards_service: bool = False) -> None:
        self.budget = budget
        self.broken = 0
        self.passed = 0
        self._towards_service = towards_service
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._target))
            for pair in ((near, far, self._towards_service), (far, near, not self._towards_service)):
                threading.Thread(target=self._pump, args=pair, daemon=True).start()

    def _pump(self, origin: socket.socket, target: socket.socket, counted: bool) -> None:
        try:
            while piece := origin.recv(1 << 16):
                target.sendall(piece)
                if not counted:
                    continue
                self.passed += len(piece)
                if self.budget is not None and self.passed >= self.budget:
                    self.budget = None
                    self.broken += 1
                    break
        except OSError:
            pass
        for end in (origin, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def close(self) -> None:
        self._listener.close()


@contextmanager
def breaking(port: int, budget: int | None, towards_service: bool = False) -> Iterator[BreakingProxy]:
    proxy = BreakingProxy(port, budget, towards_service)
    try:
        yield proxy
    finally:
        proxy.close()


def until(condition: Callable[[], bool], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "the condition did not come true"
        threading.Event().wait(0.01)


# checkpoints


def test_a_checkpoint_travels_and_is_the_same_there(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({"a.sst": os.urandom(3_000_000), "b.sst": b"b" * 2_000_000})
    stored = checkpoint(central)
    seen: list[tuple[int, int]] = []
    fetched = fetch_checkpoint(
        client, GROUP, None, tmp_path / "there", database, lambda done, total: seen.append((done, total))
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
    fetch_checkpoint(client, GROUP, None, tmp_path / "first", database)
    replica.commit({**state, "99.sst": os.urandom(100_000)})
    checkpoint(central)
    second = fetch_checkpoint(client, GROUP, None, tmp_path / "second", database)
    assert 100_000 < second.bytes_fetched < 130_000


def test_an_older_checkpoint_can_be_asked_for_by_its_seq(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    client: ChunkClient, tmp_path: Path,
) -> None:  # fmt: skip
    for _ in range(3):
        replica.commit()
        checkpoint(central)
    assert [found.seq for found in client.checkpoints(GROUP)] == [3, 2, 1]
    fetched = fetch_checkpoint(client, GROUP, Seq(2), tmp_path / "there", database)
    assert fetched.manifest.seq == 2
    for nowhere, group in ((Seq(9), GROUP), (None, "nobody")):
        with pytest.raises(CheckpointMissing):
            fetch_checkpoint(client, group, nowhere, tmp_path / "no", database)
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
    fetched = fetch_checkpoint(client, GROUP, None, tmp_path / "there", database)
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
    fetched = fetch_checkpoint(client, GROUP, None, tmp_path / "there", database)
    assert (fetched.manifest, fetched.damaged) == (stored, ())


def test_a_fetch_that_breaks_goes_on_where_it_stopped(
    replica: FakeReplica, checkpoint: Checkpoint, central: StateDatabase, database: StateDatabase,
    server: Server, tmp_path: Path,
) -> None:  # fmt: skip
    replica.commit({f"{index}.sst": os.urandom(900_000) for index in range(12)})
    stored = checkpoint(central)
    with breaking(server.port, 5_000_000) as proxy:
        client = ChunkClient(proxy.url, token(), retry_s=20)
        fetched = fetch_checkpoint(client, GROUP, None, tmp_path / "there", database)
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
    with breaking(server.port, 6_000_000) as proxy:
        impatient = ChunkClient(proxy.url, token(), retry_s=0)
        with pytest.raises(ServiceUnavailable):
            fetch_checkpoint(impatient, GROUP, None, tmp_path / "there", database)
        impatient.close()
    assert not (tmp_path / "there").exists()
    again = fetch_checkpoint(client, GROUP, None, tmp_path / "there", database)
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
    assert fetch_checkpoint(client, GROUP, None, tmp_path / "there", database).manifest == stored


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


# access


def test_each_request_needs_a_token_of_its_own_scope(
    server: Server, central: StateDatabase, files: FileStore
) -> None:
    sha = central.put_chunk(GROUP, b"secret")
    file = files.put([b"file"])
    encoded = b"".join(chunks.frames([(sha, chunks.encode(b"secret"))]))
    read, write = f"group:{GROUP}:read", f"group:{GROUP}:write"
    requests: list[tuple[str, str, str, dict[str, object]]] = [
        ("GET", f"/groups/{GROUP}/checkpoints", read, {}),
        ("DELETE", f"/groups/{GROUP}/checkpoints?after=1&up_to=1", write, {}),
        ("GET", f"/groups/{GROUP}/checkpoints/1", read, {}),
        ("PUT", f"/groups/{GROUP}/checkpoints/1", write, {"content": b"{}"}),
        ("POST", f"/groups/{GROUP}/missing", read, {"json": {"chunks": [sha]}}),
        ("POST", f"/groups/{GROUP}/fetch", read, {"json": {"chunks": [sha]}}),
        ("GET", f"/groups/{GROUP}/chunks/{sha}", read, {}),
        ("PUT", f"/groups/{GROUP}/chunks/{sha}", write, {"content": chunks.encode(b"secret")}),
        ("PUT", f"/groups/{GROUP}/chunks", write, {"content": encoded}),
        ("GET", f"/files/{file}", "files:read", {}),
        ("PUT", f"/files/{file}", "files:write", {"content": b"file"}),
    ]
    scopes = ["*", read, write, "group:other:write", "files:read", "files:write"]
    with httpx.Client(base_url=server.url) as http:
        assert http.get("/health").json() == {"status": "ok"}
        for method, path, wanted, body in requests:
            assert http.request(method, path, **body).status_code == 401  # type: ignore[arg-type]
            for scope in scopes:
                headers = {"Authorization": f"Bearer {token(scope)}"}
                status = http.request(method, path, headers=headers, **body).status_code  # type: ignore[arg-type]
                assert (status != 403) == access.grants(scope, wanted), (method, path, scope, status)
            expired = {"Authorization": f"Bearer {access.mint(KEY, '*', time.time() - 1)}"}
            assert http.request(method, path, headers=expired, **body).status_code == 403  # type: ignore[arg-type]


def test_names_that_are_no_groups_or_hashes_reach_no_file(server: Server, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"secret")
    headers = {"Authorization": f"Bearer {token()}"}
    sha = "0" * 64
    for path in (
        "/files/..%2Fsecret", "/files/../secret", f"/files/{sha.upper()}Z", "/files/x",
        "/groups/..%2F..%2Fx/checkpoints", f"/groups/.hidden/chunks/{sha}", f"/groups/{GROUP}/chunks/abc",
        f"/groups/{GROUP}/checkpoints/-1", f"/groups/{'x' * 300}/checkpoints",
    ):  # fmt: skip
        answer = httpx.get(server.url + path, headers=headers)
        assert answer.status_code in (400, 404)
        assert b"secret" not in answer.content


def test_a_body_that_is_too_large_is_refused(server: Server) -> None:
    headers = {"Authorization": f"Bearer {token()}"}
    big = b"x" * (chunks.ENCODED_BYTES_MAX + 1)
    answer = httpx.put(f"{server.url}/groups/{GROUP}/chunks/{'0' * 64}", content=big, headers=headers)
    assert answer.status_code == 413


def test_a_client_says_that_it_was_denied_and_does_not_retry(server: Server) -> None:
    client = ChunkClient(server.url, lambda scope: access.mint("wrong", scope, time.time() + 60))
    with pytest.raises(AccessDenied):
        client.checkpoints(GROUP)
    client.close()


def test_a_closed_client_says_so(server: Server) -> None:
    client = ChunkClient(server.url, token())
    assert client.health()
    client.close()
    with pytest.raises(ServiceUnavailable, match="closed on this side"):
        client.checkpoints(GROUP)


def test_a_taken_port_is_named(server: Server, central: StateDatabase) -> None:
    with pytest.raises(ServiceUnavailable, match=str(server.port)):
        serve(chunk_service(central, KEY), "127.0.0.1", server.port)


def test_a_closed_database_answers_503_and_the_client_says_so(server: Server, central: StateDatabase) -> None:
    central.put_chunk(GROUP, b"x")
    central.close()
    client = ChunkClient(server.url, token(), retry_s=0.2)
    with pytest.raises(ServiceUnavailable, match="closed"):
        client.missing(GROUP, ["0" * 64])
    client.close()


# files


def test_an_uploaded_file_reaches_a_node_once_and_whole(
    server: Server, client: ChunkClient, files: FileStore, tmp_path: Path
) -> None:
    content = os.urandom(5_000_000)
    source = tmp_path / "source"
    source.write_bytes(content)
    sha = hashlib.sha256(content).hexdigest()
    client.put_file(sha, source)
    assert files.path(sha).read_bytes() == content
    cache = FileCache(tmp_path / "cache", client)
    threads = [threading.Thread(target=cache.path, args=(sha,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    resolve = cache.resolver({"upload:7": sha})
    files.path(sha).unlink()
    assert resolve("upload:7").read_bytes() == content
    with pytest.raises(FileNotFoundError, match="upload:8"):
        resolve("upload:8")
    assert [path.name for path in (tmp_path / "cache").rglob("*") if path.is_file()] == [sha]


def test_a_broken_download_of_a_file_goes_on_where_it_stopped(
    server: Server, files: FileStore, tmp_path: Path
) -> None:
    content = os.urandom(6_000_000)
    sha = files.put([content])
    with breaking(server.port, 2_000_000) as proxy:
        client = ChunkClient(proxy.url, token(), retry_s=20)
        assert FileCache(tmp_path / "cache", client).path(sha).read_bytes() == content
        client.close()
        assert proxy.broken == 1


def test_a_file_that_does_not_match_its_hash_is_not_kept(
    client: ChunkClient, files: FileStore, tmp_path: Path
) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(CheckpointDamaged):
        client.put_file("0" * 64, tmp_path / "x")
    assert not [path for path in files.directory.rglob("*") if path.is_file()]
    with pytest.raises(CheckpointMissing):
        FileCache(tmp_path / "cache", client).path("0" * 64)


def test_shipped_demo_files_need_no_deployment_entry(client: ChunkClient, tmp_path: Path) -> None:
    (tmp_path / "debs2012.csv.gz").write_bytes(b"x")
    resolve = FileCache(tmp_path / "cache", client).resolver({}, tmp_path)
    assert resolve("demo:debs2012") == tmp_path / "debs2012.csv.gz"
    for bad in ("demo:../x", "demo:", "demo:nothing"):
        with pytest.raises(FileNotFoundError):
            resolve(bad)


# replicator


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
    until(replicator.idle)
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
    until(lambda: replicator.error is not None)
    again = serve(chunk_service(central, KEY), "127.0.0.1", server.port)
    until(replicator.idle)
    assert arrived == [3]
    assert [found.seq for found in central.manifests(GROUP)] == [3]
    assert replicator.error is None
    replicator.close()
    again.close()


def test_a_replicator_can_be_closed_while_the_other_side_is_away(database: StateDatabase) -> None:
    replicator = Replicator(database, ChunkClient("http://127.0.0.1:9", token()), lambda *_: None)
    replicator.start()
    replicator.offer(GROUP, Seq(1))
    started = time.monotonic()
    replicator.close()
    assert time.monotonic() - started < 3


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
        until(lambda: all(replicator.idle() for replicator in replicators))
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
