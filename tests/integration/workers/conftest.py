"""The fixture `cluster`: see cluster.py."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import django
import pytest
import redis

from pipeline_runtime.settings import Settings
from tests.conftest import free_ports

# After tests/conftest.py has pointed the settings at a directory of the tests' own.
django.setup()

from tests.integration.workers.cluster import Cluster, eventually  # noqa: E402


@pytest.fixture
def cluster(tmp_path: Path, redis_url: str, transactional_db: None, settings: Any) -> Iterator[Cluster]:
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
    chunk_port, a, b = free_ports(3)
    made = dataclasses.replace(
        Settings.from_env({**os.environ, "FOGLINE_DATA": str(tmp_path / "data")}),
        redis_url=redis_url,
        chunk_port=chunk_port,
        nodes=("edge-a", "edge-b"),
        silence_s=2.0,
        checkpoint_s=0.3,
    )
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.core.RedisChannelLayer",
            "CONFIG": {"hosts": [redis_url]},
        }
    }
    started = Cluster(tmp_path, made, {"edge-a": a, "edge-b": b})
    started.start_control()
    for name in made.nodes:
        started.start_node(name)
    try:
        eventually(lambda: started.up(*made.nodes), 40, "both nodes are up")
        yield started
    finally:
        started.close()
