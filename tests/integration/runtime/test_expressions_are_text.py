"""Tests that a variable in an expression stays text. Spark would replace it by a setting or an environment
variable.
"""

from __future__ import annotations

import pytest

from tests.integration.runtime.documents import events, out
from tests.integration.runtime.engine import Deployed, Node, create_topic, produce, values
from tests.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.timeout(300)]

TEXTS = ("${env:PATH}", "${system:user.home}", "${spark:spark.app.name}", "costs ${price} dollars", "${v}")


def test_it_stays_as_it_is_written(kafka: str, node: Node) -> None:
    topic, outside = create_topic(kafka), create_topic(kafka)
    texts = [{"name": f"t{number}", "expression": f"'{text}'"} for number, text in enumerate(TEXTS)]
    elements = [
        events(topic),
        {"id": "derive", "type": "derive", "inputs": {"in": "events"}, "params": {"columns": texts}},
        {
            "id": "ours",
            "type": "filter",
            "inputs": {"in": "derive"},
            "params": {"condition": "t0 = '${env:PATH}'"},
        },
        out(outside, "ours"),
    ]
    deployed = Deployed(kafka, elements, {"all": [element["id"] for element in elements]})
    node.own(deployed.specs["all"])
    produce(kafka, topic, [{"k": "a", "v": 1}])
    (row,) = wait_until(lambda: values(kafka, outside), "the row")
    assert tuple(row[f"t{number}"] for number in range(len(TEXTS))) == TEXTS
