"""A node keeps the files that its elements read, and of the others those that were used last."""

from __future__ import annotations

import os
from pathlib import Path
from time import time

import pytest

from pipeline_runtime.checkpoint.files import FileCache, FileStore
from pipeline_runtime.model.desired import NodeDesired, Role
from tests.unit.workers.test_agent_checkpoints import Runtime
from tests.unit.workers.test_slot import SPEC, owner
from tests.waiting import wait_until
from workers.node.agent import Agent
from workers.node.desired_store import DesiredStore
from workers.node.files import UNUSED_S, NodeFiles

BYTES = 1_000


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "files")


@pytest.fixture
def files(tmp_path: Path) -> NodeFiles:
    return NodeFiles(tmp_path / "files", "http://127.0.0.1:1", "key", unused_bytes=2 * BYTES)


def put(store: FileStore, content: str, unused_s: float) -> str:
    sha = store.put([content.encode() * BYTES])
    os.utime(store.path(sha), (time() - unused_s, time() - unused_s))
    return sha


def test_the_least_recently_used_go_first_and_none_that_is_in_use(files: NodeFiles, store: FileStore) -> None:
    kept = [put(store, content, UNUSED_S + 100 - n) for n, content in enumerate("abcde")]
    in_use = kept[0]
    assert files.clean({in_use}) == [kept[1], kept[2]]
    assert [sha in store for sha in kept] == [True, False, False, True, True]
    assert files.clean({in_use}) == []


def test_what_was_used_a_moment_ago_stays(files: NodeFiles, store: FileStore) -> None:
    old = [put(store, content, UNUSED_S + 100 - n) for n, content in enumerate("abc")]
    files.fetch(SPEC.model_copy(update={"files": {"upload:1": old[0]}}))
    assert files.clean(set()) == [old[1]]
    assert files.resolve("upload:1").read_bytes() == b"a" * BYTES
    # What an element read until now was used now.
    old = [old[2], *(put(store, content, UNUSED_S + 50) for content in "de")]
    files.clean({old[0]})
    assert old[0] not in files.clean(set())


def test_a_file_that_was_deleted_is_fetched_again(store: FileStore, tmp_path: Path) -> None:
    class Central:
        asked = 0

        def get_file(self, sha, write, progress=None):  # type: ignore[no-untyped-def]
            self.asked += 1
            write(b"a" * BYTES)

    central = Central()
    cache = FileCache(tmp_path / "files", central)
    sha = put(store, "a", UNUSED_S + 1)
    assert cache.drop(set(), UNUSED_S, 0) == [sha]
    assert cache.path(sha).read_bytes() == b"a" * BYTES
    assert central.asked == 1
    assert cache.drop(set(), UNUSED_S, 0) == []


def test_a_node_says_which_files_it_reads_or_is_to_read(tmp_path: Path) -> None:
    first, second = "1" * 64, "2" * 64
    agent = Agent("edge-a", Runtime(tmp_path).runtime(), DesiredStore(tmp_path / "desired.json"), 3600.0)
    agent.start()
    wanted = owner(spec=SPEC.model_copy(update={"files": {"upload:1": first}}))
    agent.apply(NodeDesired(node="edge-a", revision=1, replicas=(wanted,)))
    wait_until(lambda: agent.statuses() and agent.statuses()[0].role is Role.OWNER)
    assert agent.files_in_use() == {first}
    # Until the replica has ended, it may read the file.
    newer = owner(order="o2", spec=SPEC.model_copy(update={"files": {"upload:1": second}}))
    agent.apply(NodeDesired(node="edge-a", revision=2, replicas=(newer,)))
    assert agent.files_in_use() >= {second}
    agent.close(5.0)
