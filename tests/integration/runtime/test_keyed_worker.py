"""The Python process that keeps the state of a keyed element."""

from __future__ import annotations

import pytest

from tests.integration.runtime.documents import events, out
from tests.integration.runtime.engine import Deployed, Node, create_topic, produce, values
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]


def test_it_collects_no_garbage_among_what_it_has_imported(kafka: str, node: Node) -> None:
    """PySpark collects after each batch: what is frozen by then costs nothing."""
    topic, outside = create_topic(kafka), create_topic(kafka)
    elements = [
        events(topic),
        {"id": "frozen", "type": "frozen", "inputs": {"in": "events"}, "params": {}},
        out(outside, "frozen"),
    ]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    frozen: list[int] = []
    for number in range(1, 4):
        produce(kafka, topic, [{"k": "a", "v": number}])
        wait_until(lambda number=number: len(values(kafka, outside)) == number, f"batch {number}")
        frozen = [row["v"] for row in values(kafka, outside)]
    assert min(frozen) > 10_000, frozen
