"""The fixture `cluster`: see cluster.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import django
import pytest
import redis

from pipeline_runtime.settings import Settings
from tests.conftest import free_ports
from workers.supervisor.services import Redis

# After tests/conftest.py has pointed the settings at a directory of the tests' own.
django.setup()

from tests.integration.workers.cluster import SILENCE_S, Cluster  # noqa: E402
from tests.integration.workers.zygote import Zygote  # noqa: E402
from tests.waiting import PATIENCE_S, wait_until  # noqa: E402
from workers.control.handovers import steps as handover_steps  # noqa: E402
from workers.control.operations import effects, limits  # noqa: E402

NEVER_S = 3600.0
Running = Callable[..., AbstractContextManager[Cluster]]


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    """What starts the nodes of all clusters."""
    started = Zygote()
    yield started
    started.close()


@pytest.fixture
def running(
    tmp_path: Path,
    zygote: Zygote,
    transactional_db: None,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> Running:
    """running(redis_url): control and nodes that are up; all of it ends with the block."""
    # A slow machine is not to take another way than the one that is tested.
    for limit in ("RELEASED_MS_MAX", "GAP_MS_MAX", "CUT_MS_MAX"):
        monkeypatch.setattr(handover_steps, limit, int(PATIENCE_S * 1000))
    monkeypatch.setattr(limits, "HEARD_MS", int(PATIENCE_S * 1000))

    @contextmanager
    def run(
        redis_url: str,
        *,
        kafka: str = "127.0.0.1:9",
        checkpoint_s: float = 0.5,
        restore: str = "auto",
        leave_s: float = 0.0,
        nodes: tuple[str, ...] = ("edge-a", "edge-b"),
    ) -> Iterator[Cluster]:
        with redis.Redis.from_url(redis_url) as client:
            client.flushdb()
        chunk_port, *ports = free_ports(1 + len(nodes))
        environ = {**os.environ, "FOGLINE_DATA": str(tmp_path / "data")}
        made = Settings.from_env(environ).model_copy(
            update={
                "kafka": kafka,
                "redis_url": redis_url,
                "chunk_port": chunk_port,
                "nodes": nodes,
                "silence_s": SILENCE_S,
                "restore": restore,
                "checkpoint_s": checkpoint_s,
            }
        )
        settings.CHANNEL_LAYERS = {
            "default": {
                "BACKEND": "channels_redis.core.RedisChannelLayer",
                "CONFIG": {"hosts": [redis_url]},
            }
        }
        cluster = Cluster(tmp_path, made, dict(zip(nodes, ports, strict=True)), zygote, leave_s)
        try:
            cluster.start_control()
            for name in nodes:
                cluster.start_node(name)
            wait_until(lambda: cluster.up(*nodes), "all nodes are up")
            yield cluster
        finally:
            cluster.close()

    return run


@pytest.fixture
def cluster(running: Running, redis_url: str) -> Iterator[Cluster]:
    with running(redis_url) as started:
        yield started


@pytest.fixture
def cluster_of_three(running: Running, redis_url: str) -> Iterator[Cluster]:
    """Beside the owner and its backup node, one that has nothing of it. No periodic checkpoints."""
    with running(redis_url, checkpoint_s=NEVER_S, nodes=("edge-a", "edge-b", "edge-c")) as started:
        yield started


@pytest.fixture
def manual_cluster(running: Running, redis_url: str) -> Iterator[Cluster]:
    """What falls silent is left to people."""
    with running(redis_url, restore="manual") as started:
        yield started


@pytest.fixture
def cluster_without_periodic_checkpoints(running: Running, redis_url: str) -> Iterator[Cluster]:
    with running(redis_url, checkpoint_s=NEVER_S) as started:
        yield started


@pytest.fixture
def kafka_cluster(running: Running, redis_url: str, kafka: str) -> Iterator[Cluster]:
    """With a broker, for what creates topics. The stand-in nodes themselves do without."""
    with running(redis_url, kafka=kafka) as started:
        yield started


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis that the test may stop and start again."""
    (port,) = free_ports(1)
    with Redis(tmp_path / "redis", port) as service:
        yield service


@pytest.fixture
def cluster_on_own_redis(running: Running, own_redis: Redis) -> Iterator[Cluster]:
    with running(own_redis.url) as started:
        yield started


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a Kafka is asked for that does all of it; with a real one, test_deployments."""
    asked: list[str] = []
    monkeypatch.setattr(effects, "ensure_topics", lambda *_: asked.append("create"))
    monkeypatch.setattr(effects, "delete_topics", lambda *_: asked.append("delete"))
    return asked
