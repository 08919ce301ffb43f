"""A replica that ends at any moment goes on from its own disk: nothing is lost, nothing is repeated."""

from __future__ import annotations

import random

import pytest

from pipeline_runtime.model.desired import Role
from tests.integration.runtime.documents import Stream, by_key, events, file, lines, out, running_sums, sums
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    owning,
    values,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration


def test_stops_and_kills_at_any_moment_lose_and_repeat_nothing(kafka: str, node: Node) -> None:
    chance = random.Random(3)
    source, target = create_topic(kafka), create_topic(kafka)
    deployed = Deployed(
        kafka,
        [events(source), sums(), file(), out(target)],
        {"all": ["events", "sums", "file", "out"]},
    )
    spec = deployed.specs["all"]
    stream = Stream(kafka, source)
    stream.start()
    ways = ["stop", "kill", "kill", "stop", "kill", "kill"]
    for epoch, way in enumerate(ways, 1):
        replica = node.own(spec, over=epoch - 1)
        begun = owning(replica)
        assert begun.epoch == epoch
        more = begun.seq + chance.randint(0, 6)
        wait_for_status(replica, lambda status, more=more: status.seq >= more, f"to reach seq {more}")
        if way == "kill":
            replica.kill()
        replica.stop(STOP_S)
        assert replica.status().role is Role.STOPPED
        assert replica.status().phase == "stopped"
    replica = node.own(spec, over=len(ways))
    assert owning(replica).epoch == len(ways) + 1
    expected = running_sums(stream.finish())
    count = sum(len(made) for made in expected.values())
    wait_until(lambda: len(values(kafka, target)) >= count, "all rows")
    assert by_key(values(kafka, target)) == expected
    path = node.replica_directory(spec) / "elements" / "file" / "out.csv"
    assert by_key(lines(path)) == expected
    deployed.assert_journal_lawful("all")
    refused = [row["v"] for row in stream.rows if row["v"] < 0]
    # The last row may be a refused one, in a batch of its own.
    wait_until(lambda: len(deployed.dead_letters("sums")) >= len(refused), "all dead letters")
    assert len(deployed.dead_letters("sums")) == len(refused)


def test_a_restart_whose_journal_is_one_batch_ahead_keeps_the_file(kafka: str, node: Node) -> None:
    """Killed between the commit and Spark's own: the batch is processed again, and not emitted."""
    source, target = create_topic(kafka), create_topic(kafka)
    deployed = Deployed(
        kafka, [events(source), file("events"), out(target, "events")], {"all": ["events", "file", "out"]}
    )
    spec = deployed.specs["all"]
    stream = Stream(kafka, source, rate=50)
    stream.start()
    replica = node.own(spec)
    wait_for_status(replica, lambda status: status.seq >= 4, "to reach seq 4")
    node.stop_all()
    # As if it had died there: Spark's record of its newest batches is taken away.
    directory = node.replica_directory(spec) / "spark"
    batches = sorted(int(path.name) for path in (directory / "commits").iterdir() if path.name.isdigit())
    for name in (str(batches[-1]), f".{batches[-1]}.crc"):
        (directory / "commits" / name).unlink(missing_ok=True)
    replica = node.own(spec, over=1)
    status = owning(replica)
    assert status.epoch == 2
    rows = stream.finish()
    wait_until(lambda: len(values(kafka, target)) >= len(rows), "all rows")
    assert values(kafka, target) == rows
    path = node.replica_directory(spec) / "elements" / "file" / "out.csv"
    assert [(row["k"], int(row["v"])) for row in lines(path)] == [(row["k"], row["v"]) for row in rows]
    deployed.assert_journal_lawful("all")
