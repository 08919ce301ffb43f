"""The fixture `cluster`: see cluster.py."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
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

from tests.integration.workers.cluster import Cluster  # noqa: E402
from tests.waiting import wait_until  # noqa: E402

PATIENT_S = 20.0
"""A busy build machine stands still for seconds: only where silence is the point is it short."""


@contextmanager
def running(
    tmp_path: Path,
    redis_url: str,
    settings: Any,
    *,
    kafka: str = "127.0.0.1:9",
    checkpoint_s: float = 0.3,
    silence_s: float = PATIENT_S,
    restore: str = "auto",
    nodes: tuple[str, ...] = ("edge-a", "edge-b"),
) -> Iterator[Cluster]:
    """Control and nodes that are up; all of it ends with the block."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    chunk_port, *ports = free_ports(1 + len(nodes))
    made = dataclasses.replace(
        Settings.from_env({**os.environ, "FOGLINE_DATA": str(tmp_path / "data")}),
        kafka=kafka,
        redis_url=redis_url,
        chunk_port=chunk_port,
        nodes=nodes,
        silence_s=silence_s,
        restore=restore,
        checkpoint_s=checkpoint_s,
    )
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    cluster = Cluster(tmp_path, made, dict(zip(nodes, ports, strict=True)))
    cluster.start_control()
    for name in nodes:
        cluster.start_node(name)
    try:
        wait_until(lambda: cluster.up(*nodes), "all nodes are up")
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def cluster(tmp_path: Path, redis_url: str, transactional_db: None, settings: Any) -> Iterator[Cluster]:
    with running(tmp_path, redis_url, settings) as started:
        yield started


@pytest.fixture
def cluster_of_three(
    tmp_path: Path, redis_url: str, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    """Beside the owner and its backup node, one that has nothing of it."""
    with running(tmp_path, redis_url, settings, nodes=("edge-a", "edge-b", "edge-c")) as started:
        yield started


@pytest.fixture
def watchful_cluster(
    tmp_path: Path, redis_url: str, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    """Silence is noticed soon, and what the node ran is restored by itself."""
    with running(tmp_path, redis_url, settings, silence_s=3.0) as started:
        yield started


@pytest.fixture
def manual_cluster(
    tmp_path: Path, redis_url: str, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    """Silence is noticed soon, and left to people."""
    with running(tmp_path, redis_url, settings, silence_s=3.0, restore="manual") as started:
        yield started


@pytest.fixture
def cluster_without_periodic_checkpoints(
    tmp_path: Path, redis_url: str, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    with running(tmp_path, redis_url, settings, checkpoint_s=3600) as started:
        yield started


@pytest.fixture
def kafka_cluster(
    tmp_path: Path, redis_url: str, kafka: str, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    """With a broker, for what creates topics. The stand-in nodes themselves do without."""
    with running(tmp_path, redis_url, settings, kafka=kafka) as started:
        yield started


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A Redis that the test may stop and start again."""
    (port,) = free_ports(1)
    with Redis(tmp_path / "redis", port) as service:
        yield service


@pytest.fixture
def cluster_on_own_redis(
    tmp_path: Path, own_redis: Redis, transactional_db: None, settings: Any
) -> Iterator[Cluster]:
    with running(tmp_path, own_redis.url, settings) as started:
        yield started
