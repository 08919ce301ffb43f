"""A group that reads another stream than before goes on from its state: no row twice, none left out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.model.desired import ClaimOrder
from pipeline_runtime.model.ids import Epoch, stream_topic
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.replica.replica import Replica
from tests.chosen import chosen
from tests.directing import tell
from tests.integration.runtime.copying import copy_state
from tests.integration.runtime.documents import by_key, events, running_sums, sums
from tests.integration.runtime.engine import (
    STOP_S,
    Deployed,
    Node,
    create_topic,
    owning,
    produce,
    read_all,
    wait_for_status,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.integration

Row = dict[str, Any]


class Rows:
    """The rows of a user's topic."""

    def __init__(self, kafka: str, topic: str, step: int) -> None:
        self._kafka, self._topic, self._step = kafka, topic, step
        self.sent: list[Row] = []

    def send(self, count: int) -> None:
        numbers = range(len(self.sent), len(self.sent) + count)
        rows = [{"k": f"k{n % 3}", "v": n * self._step} for n in numbers]
        produce(self._kafka, self._topic, rows, key=lambda row: row["k"])
        self.sent += rows


def rewired(spec: GroupSpec, producer: str) -> GroupSpec:
    """The same element, with another element's stream at its port."""
    [element], [stream] = spec.elements, spec.inputs
    source, topic = f"{producer}.out", stream_topic(spec.deployment, producer)
    schemas = {port: schema for port, schema in spec.schemas.items() if port != stream.source}
    return spec.model_copy(
        update={
            "elements": (element.model_copy(update={"inputs": {"in": source}}),),
            "inputs": (stream.model_copy(update={"source": source, "topic": topic}),),
            "schemas": {**schemas, source: stream.data_schema},
            "version": f"{spec.version}-{producer}",
        }
    )


def two_streams(kafka: str, node: Node) -> tuple[Deployed, dict[str, Replica], Rows, Rows]:
    """Runs two streams, and sums that read the first one."""
    topics = [create_topic(kafka), create_topic(kafka)]
    deployed = Deployed(kafka, [events(topics[0]), {**events(topics[1]), "id": "others"}, sums()])
    first, second = (Rows(kafka, topic, step) for topic, step in zip(topics, (1, 1000), strict=True))
    replicas = deployed.run(node)
    for replica in replicas.values():
        owning(replica)
    return deployed, replicas, first, second


def processed(deployed: Deployed, rows: list[Row]) -> None:
    """Exactly these, in this order for each key."""
    wait_until(lambda: len(deployed.records("sums")) >= len(rows), "all rows are processed")
    assert by_key(deployed.records("sums")) == running_sums(rows)


@pytest.mark.parametrize("begin", chosen([0, 7, None], [7]), ids=["at the beginning", "in the middle", "now"])
def test_its_state_goes_on_with_the_rows_of_the_other_stream(
    kafka: str, node: Node, other_node: Node, tmp_path: Path, begin: int | None
) -> None:
    deployed, replicas, first, second = two_streams(kafka, node)
    first.send(30)
    processed(deployed, first.sent)
    second.send(12)
    wait_until(lambda: len(deployed.records("others")) == 12, "the other stream has rows")
    copy_state(deployed.specs["sums"], node, other_node, tmp_path)
    first.send(10)
    processed(deployed, first.sent)
    replicas["sums"].stop(STOP_S)

    spec = rewired(deployed.specs["sums"], "others")
    topic = spec.inputs[0].topic
    starts = {} if begin is None else {f"{topic}-0": read_all(kafka, topic)[begin].offset if begin else 0}
    owner = node.start(spec)
    tell(owner, order=ClaimOrder(id="rewired", over=Epoch(1), starts=tuple(starts.items())))
    owning(owner)
    skipped = 12 if begin is None else begin
    first.send(5)  # nobody reads them any more
    second.send(5)
    read = first.sent[:40] + second.sent[skipped:]
    processed(deployed, read)

    # Who starts from a checkpoint of before follows it through both, and takes over.
    standby = other_node.start(spec)
    wait_for_status(standby, lambda s: s.seq > 0 and s.seq == owner.status().seq, "the standby has followed")
    owner.stop(STOP_S)
    tell(standby, order=ClaimOrder(id="taken over", over=Epoch(2)))
    owning(standby)
    second.send(5)
    processed(deployed, first.sent[:40] + second.sent[skipped:])
    assert standby.status().error is None
    moves = [claim.moves for claim in deployed.claims("sums")]
    assert [move is not None for move in moves] == [False, True, False]
    deployed.assert_journal_lawful("sums")


def test_an_owner_that_is_killed_before_its_first_batch_begins_where_its_claim_said(
    kafka: str, node: Node
) -> None:
    deployed, replicas, first, second = two_streams(kafka, node)
    first.send(20)
    processed(deployed, first.sent)
    replicas["sums"].stop(STOP_S)
    spec = rewired(deployed.specs["sums"], "others")
    owner = node.start(spec)
    tell(owner, order=ClaimOrder(id="rewired", over=Epoch(1)))
    owning(owner)
    owner.stop(STOP_S)
    second.send(10)  # behind where it claimed to begin, and before anybody goes on
    wait_until(lambda: len(deployed.records("others")) == 10, "the other stream has rows")
    owner = node.own(spec, over=2)
    processed(deployed, first.sent + second.sent)
    assert [claim.moves is not None for claim in deployed.claims("sums")] == [False, True, False]


def test_it_may_begin_without_its_state_in_another_stream(kafka: str, node: Node) -> None:
    deployed, replicas, first, second = two_streams(kafka, node)
    first.send(20)
    processed(deployed, first.sent)
    second.send(12)
    wait_until(lambda: len(deployed.records("others")) == 12, "the other stream has rows")
    replicas["sums"].stop(STOP_S)
    spec = rewired(deployed.specs["sums"], "others")
    topic = spec.inputs[0].topic
    starts = ((f"{topic}-0", read_all(kafka, topic)[7].offset),)
    owner = node.start(spec)
    tell(owner, order=ClaimOrder(id="rewired", over=Epoch(1), fresh=True, starts=starts))
    owning(owner)
    second.send(5)
    rows = second.sent[7:]
    wait_until(lambda: len(deployed.records("sums")) >= 20 + len(rows), "all rows are processed")
    assert by_key(deployed.records("sums")[20:]) == running_sums(rows)
    owner.stop(STOP_S)
    owner = node.own(spec, over=max(claim.epoch for claim in deployed.claims("sums")))
    second.send(5)
    rows = second.sent[7:]
    wait_until(lambda: len(deployed.records("sums")) >= 20 + len(rows), "it goes on")
    assert by_key(deployed.records("sums")[20:]) == running_sums(rows)
    deployed.assert_journal_lawful("sums")


def merging(spec: GroupSpec, *producers: str) -> GroupSpec:
    """The same merge of these streams."""
    element, *behind = spec.elements
    stream = spec.inputs[0]
    sources = [f"{producer}.out" for producer in producers]
    inputs = {f"in{number}": source for number, source in enumerate(sources, 1)}
    streams = [(source, stream_topic(spec.deployment, source.removesuffix(".out"))) for source in sources]
    return spec.model_copy(
        update={
            "elements": (element.model_copy(update={"inputs": inputs}), *behind),
            "inputs": tuple(
                stream.model_copy(update={"source": source, "topic": topic}) for source, topic in streams
            ),
            "schemas": {**spec.schemas, **dict.fromkeys(sources, stream.data_schema)},
            "version": f"{spec.version}-{len(producers)}",
        }
    )


def test_a_merge_reads_more_streams_and_then_fewer_each_row_once(kafka: str, node: Node) -> None:
    """A group without state begins fresh where it stands. Its readers are not touched."""
    names = ["events", "others", "late"]
    topics = [create_topic(kafka) for _ in names]
    sources = [{**events(topic), "id": name} for name, topic in zip(names, topics, strict=True)]
    merge = {"id": "merged", "type": "merge", "inputs": {"in1": "events", "in2": "others"}}
    deployed = Deployed(kafka, [*sources, merge, sums("merged")])
    first, second, late = (
        Rows(kafka, topic, step) for topic, step in zip(topics, (1, 50, 1000), strict=True)
    )
    replicas = deployed.run(node)
    for replica in replicas.values():
        owning(replica)

    def merged() -> list[int]:
        return sorted(row["v"] for row in deployed.records("merged"))

    def all_of(*rows: Rows) -> list[int]:
        return sorted(row["v"] for each in rows for row in each.sent)

    first.send(9)
    second.send(6)
    late.send(4)
    wait_until(lambda: merged() == all_of(first, second), "both streams")
    replicas["merged"].stop(STOP_S)
    spec = merging(deployed.specs["merged"], *names)
    order = ClaimOrder(id="more", over=Epoch(1), fresh=True, starts=((f"{spec.inputs[2].topic}-0", 0),))
    first.send(3)
    owner = node.start(spec)
    tell(owner, order=order)
    owning(owner)
    late.send(2)
    wait_until(lambda: merged() == all_of(first, second, late), "the third from its first row")

    owner.stop(STOP_S)
    spec = merging(deployed.specs["merged"], "others", "late")
    owner = node.start(spec)
    epoch = max(claim.epoch for claim in deployed.claims("merged"))
    tell(owner, order=ClaimOrder(id="fewer", over=Epoch(epoch), fresh=True))
    owning(owner)
    second.send(5)
    late.send(5)
    wait_until(lambda: merged() == all_of(first, second, late), "without the first")
    assert {commit.epoch for commit in deployed.commits("sums")} == {1}
    for group in deployed.specs:
        deployed.assert_journal_lawful(group)


@pytest.mark.full
def test_a_state_goes_on_behind_a_merge_that_reads_more_streams_and_then_fewer(
    kafka: str, node: Node
) -> None:
    names = ["events", "others", "late"]
    topics = [create_topic(kafka) for _ in names]
    sources = [{**events(topic), "id": name} for name, topic in zip(names, topics, strict=True)]
    merge = {"id": "merged", "type": "merge", "inputs": {"in1": "events", "in2": "others"}}
    deployed = Deployed(kafka, [*sources, merge, sums("merged")], {"both": ["merged", "sums"]})
    feeds = [Rows(kafka, topic, step) for topic, step in zip(topics, (1, 50, 1000), strict=True)]
    replicas = deployed.run(node)
    for replica in replicas.values():
        owning(replica)

    def send(*counts: int) -> None:
        for feed, count in zip(feeds, counts, strict=True):
            if count:
                feed.send(count)

    def totals() -> dict[str, int]:
        return {key: values[-1] for key, values in by_key(deployed.records("sums")).items()}

    def of_all(*read: Rows) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in (row for feed in read for row in feed.sent):
            found[row["k"]] = found.get(row["k"], 0) + row["v"]
        return found

    send(9, 6, 4)
    wait_until(lambda: totals() == of_all(*feeds[:2]), "both streams")
    replicas["both"].stop(STOP_S)
    spec = merging(deployed.specs["both"], *names)
    owner = node.start(spec)
    tell(owner, order=ClaimOrder(id="more", over=Epoch(1), starts=((f"{spec.inputs[2].topic}-0", 0),)))
    owning(owner)
    send(3, 0, 2)
    wait_until(lambda: totals() == of_all(*feeds), lambda: f"the third as well: {totals()} {of_all(*feeds)}")
    owner.stop(STOP_S)
    left = of_all(feeds[0])
    spec = merging(deployed.specs["both"], "others", "late")
    owner = node.start(spec)
    epoch = max(claim.epoch for claim in deployed.claims("both"))
    tell(owner, order=ClaimOrder(id="fewer", over=Epoch(epoch)))
    owning(owner)
    send(0, 5, 5)
    wait_until(
        lambda: totals() == {key: total + left[key] for key, total in of_all(*feeds[1:]).items()},
        "what the first stream has given stays in the sums",
    )
    for group in deployed.specs:
        deployed.assert_journal_lawful(group)
