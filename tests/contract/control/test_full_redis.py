"""Redis full of reports: it is free again when control has read them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest
import redis

from pipeline_runtime.wire import keys
from tests.contract.control.test_bad_rows import numbers, sent
from webapp.nodes.models import Node
from workers.control.context import ControlContext
from workers.control.reports.ingest import Ingest

REPORTS = 50
LARGE = Random(41).randbytes(20_000).hex()  # a text that stays large when it is packed


@contextmanager
def full_of_reports(client: redis.Redis, *, read: bool) -> Iterator[None]:
    """REPORTS large ones of edge-a, and no more writes until half of them are gone."""
    before = client.info("memory")["used_memory"]
    for number in range(1, REPORTS + 1):
        sent(client, "edge-a", number, version=LARGE)
    if read:
        [(newest, _)] = client.xrevrange(keys.REPORTS_STREAM, count=1)
        client.set(keys.REPORTS_CURSOR, newest)
    client.config_set("maxmemory", (before + client.info("memory")["used_memory"]) // 2)
    try:
        with pytest.raises(redis.exceptions.OutOfMemoryError):
            sent(client, "edge-b", 1)
        yield
    finally:
        client.config_set("maxmemory", "256mb")


def test_reports_that_were_read_do_not_stay(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    ingest = Ingest(context)
    for number in range(1, 4):
        sent(real_redis, "edge-a", number)
        sent(real_redis, "edge-b", number)
        ingest._round()
    assert numbers() == {"edge-a": 3, "edge-b": 3, "edge-c": 0}
    ingest._round()
    assert real_redis.xlen(keys.REPORTS_STREAM) == 1, "the newest"


def test_a_redis_that_is_full_of_reports_that_were_read_is_free_after_a_start(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    with full_of_reports(real_redis, read=True):
        Ingest(context)._round()
        sent(real_redis, "edge-b", 1)


def test_a_redis_that_is_full_of_reports_that_nobody_has_read_becomes_free(
    context: ControlContext, nodes: dict[str, Node], real_redis: redis.Redis
) -> None:
    with full_of_reports(real_redis, read=False):
        ingest = Ingest(context)
        with suppress(redis.exceptions.OutOfMemoryError):  # the cursor may not be written down yet
            ingest._round()
        assert numbers()["edge-a"] == REPORTS
        ingest._round()
        sent(real_redis, "edge-b", 1)
        ingest._round()
        assert numbers()["edge-b"] == 1
        assert real_redis.get(keys.REPORTS_CURSOR)
