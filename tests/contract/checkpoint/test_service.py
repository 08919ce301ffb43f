"""A chunk service over real HTTP: who may ask what, and files."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from pathlib import Path

import httpx
import pytest

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
from pipeline_runtime.checkpoint.service import Server, chunk_service, serve
from tests.contract.checkpoint.services import KEY, breaking, token
from tests.unit.checkpoint.replicas import GROUP

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
        ("GET", "/probe", "probe", {}),
    ]
    scopes = ["*", read, write, "group:other:write", "files:read", "files:write", "probe"]
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
    client = ChunkClient(server.url, lambda scope: access.mint("wrong", scope, time.time() + 3600))
    with pytest.raises(AccessDenied):
        client.checkpoints(GROUP)
    client.close()


def test_a_closed_client_says_so(server: Server) -> None:
    client = ChunkClient(server.url, token())
    assert client.checkpoints(GROUP) == ()
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
