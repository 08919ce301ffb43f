"""A node whose Spark is dead does not say that it was stopped in order."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from pyspark import SparkContext

from pipeline_runtime.checkpoint.errors import ServiceUnavailable
from pipeline_runtime.kafka.clients import KafkaSettings
from tests.ports import free_block
from tests.waiting import PATIENCE_S, wait_until
from workers.node import process
from workers.node.engine import EngineFactory
from workers.node.heartbeat import Heartbeat
from workers.node.identity import CREDENTIAL_FILE, Identity
from workers.node.process import PORTS_TRIED, NodeProcess


class Engine:
    def __init__(self, *_: Any) -> None:
        pass

    def start(self) -> None:
        pass

    def open_replica(self, *_: Any) -> Any:
        raise AssertionError("no replica is wanted")

    def close(self) -> None:
        pass


class BrokenEngine(Engine):
    def start(self) -> None:
        raise RuntimeError("JAVA_HOME is not set")


class NoCommands:
    """Commands come over Redis, which these tests do without."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def start(self) -> None:
        pass

    def stop(self, timeout_s: float) -> None:
        pass


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of the reports that the node sends."""
    kinds: list[str] = []
    monkeypatch.setattr(Heartbeat, "_send", lambda _, kind: kinds.append(kind))
    return kinds


@pytest.fixture
def java(monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """In place of Spark's Java process."""
    waits = [sys.executable, "-c", "import sys; sys.stdin.read()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE) as started:
        monkeypatch.setattr(SparkContext, "_gateway", SimpleNamespace(proc=started))
        yield started
        started.kill()


@pytest.fixture
def begin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[EngineFactory], NodeProcess]:
    monkeypatch.setattr(process, "CommandReceiver", NoCommands)
    monkeypatch.setattr(process, "WATCH_S", 0.01)

    def start(engine: EngineFactory, port: int = 0, port_fixed: bool = True) -> NodeProcess:
        port = port or free_block(1)
        identity = Identity(
            name="edge-a", directory=tmp_path / "edge-a", kafka=KafkaSettings("none:1"),
            redis_url="redis://none:1", cluster_key="key", central_url="http://none:1",
            listen_host="127.0.0.1", port=port, url=f"http://127.0.0.1:{port}", checkpoint_s=5,
            port_fixed=port_fixed,
        )  # fmt: skip
        node = NodeProcess(identity, engine)
        node.start()
        return node

    return start


def test_a_node_whose_java_process_ends_stops_and_says_no_goodbye(
    begin: Callable[[EngineFactory], NodeProcess],
    java: subprocess.Popen[bytes],
    sent: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node = begin(Engine)
    assert node._spark_up.wait(PATIENCE_S)
    looks, poll = [], java.poll
    monkeypatch.setattr(java, "poll", lambda: looks.append(1) or poll())
    wait_until(lambda: len(looks) > 1, "Java is looked at")
    assert not node._stopping.is_set(), "as long as Java runs, so does the node"
    java.kill()
    assert node._stopping.wait(PATIENCE_S)
    assert "ended with code -9" in str(node._stopping.failure)
    assert not node._report(1).ready
    node.close()
    assert "heartbeat" in sent
    assert "bye" not in sent


def test_a_node_whose_spark_does_not_start_says_no_goodbye(
    begin: Callable[[EngineFactory], NodeProcess], sent: list[str]
) -> None:
    node = begin(BrokenEngine)
    assert node._stopping.wait(PATIENCE_S)
    node.close()
    assert "JAVA_HOME" in str(node._stopping.failure)
    assert "bye" not in sent


@pytest.fixture
def taken() -> Iterator[int]:
    """A port of 127.0.0.1 on which another listens, and which has free ones behind it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", free_block(PORTS_TRIED)))
        listener.listen()
        yield listener.getsockname()[1]


def test_a_node_for_which_no_port_was_named_takes_a_free_one_and_keeps_it(
    begin: Callable[..., NodeProcess], sent: list[str], taken: int, tmp_path: Path
) -> None:
    credential = tmp_path / "edge-a" / CREDENTIAL_FILE
    credential.parent.mkdir()
    joined = {"url": f"http://127.0.0.1:{taken}", "kafka": {"bootstrap": "none:1"}, "port_fixed": False}
    joined |= {"redis_url": "redis://none:1", "cluster_key": "key", "central_url": "http://none:1"}
    credential.write_text(json.dumps(joined))
    node = begin(Engine, port=taken, port_fixed=False)
    reported = node._report(1).url
    node.close()
    port = urlsplit(reported).port or 0
    assert taken < port < taken + PORTS_TRIED
    kept = json.loads(credential.read_text())
    assert kept == {**joined, "url": reported}
    again = begin(Engine, port=port, port_fixed=False)
    assert again._report(1).url == reported
    again.close()


def test_a_port_that_was_named_is_not_exchanged_for_another(
    begin: Callable[..., NodeProcess], sent: list[str], taken: int
) -> None:
    with pytest.raises(ServiceUnavailable, match=f"127.0.0.1:{taken}: Address already in use"):
        begin(Engine, port=taken)


def test_a_node_that_is_stopped_in_order_says_goodbye_although_java_ends_too(
    begin: Callable[[EngineFactory], NodeProcess], java: subprocess.Popen[bytes], sent: list[str]
) -> None:
    node = begin(Engine)
    assert node._spark_up.wait(PATIENCE_S)
    node._stopping.set()  # as a signal does
    java.kill()
    node.close()
    assert node._stopping.failure is None
    assert sent[-1] == "bye"
