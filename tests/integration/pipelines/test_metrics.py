"""Tests that /metrics counts the right rows: for a group of several elements, and for a group of one."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from pipeline_runtime.model.ids import dead_letter_topic, stream_topic
from tests.integration.pipelines.driving import CommittedReader, create_topic, deploy
from tests.integration.pipelines.statistics import RECOVERY_S
from tests.running import RunningFogline
from tests.waiting import wait_until

PIPELINE = "counted"
GOOD, BAD, THIRDS = 600, 7, 200  # rows sent, of which none can be parsed, rows that the filter keeps


def document(topic: str) -> dict[str, Any]:
    columns = [{"name": "n", "type": "integer"}]
    elements: list[dict[str, Any]] = [
        {"id": "events", "type": "kafka-in", "params": {"topic": topic, "columns": columns}},
        {"id": "thirds", "type": "filter", "params": {"condition": "n % 3 = 0"}, "inputs": {"in": "events"}},
        {
            "id": "twice",
            "type": "derive",
            "params": {"columns": [{"name": "m", "expression": "n * 2"}]},
            "inputs": {"in": "thirds"},
        },
        {"id": "alone", "type": "filter", "params": {"condition": "n >= 0"}, "inputs": {"in": "thirds"}},
    ]
    for element in elements:
        element["node"] = "edge-a"
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {
            "elements": elements,
            "groups": [{"id": "three", "elements": ["events", "thirds", "twice"]}],
        },
    }


def counters(client: httpx.Client) -> dict[str, dict[str, float]]:
    """Metric -> element -> value, of the pipeline."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(client.get("/metrics").text):
        for sample in family.samples:
            if sample.labels.get("pipeline") == PIPELINE and "quantile" not in sample.labels:
                found.setdefault(sample.name, {})[sample.labels["element"]] = sample.value
    return found


@pytest.mark.integration
@pytest.mark.timeout(900)
def test_the_counters_are_the_rows_that_went_through(fogline: RunningFogline, client: httpx.Client) -> None:
    topic = "counted-in"
    create_topic(fogline.bootstrap, topic)
    deployment = deploy(client, document(topic))
    producer = KafkaProducer(bootstrap_servers=fogline.bootstrap)
    for n in range(GOOD):
        producer.send(topic, value=b'{"n": %d}' % n)
    for _ in range(BAD):
        producer.send(topic, value=b"no JSON")
    producer.flush()
    producer.close()
    for stream, count in (
        (stream_topic(deployment, "twice"), THIRDS),
        (stream_topic(deployment, "thirds"), THIRDS),
        (stream_topic(deployment, "alone"), THIRDS),
        (dead_letter_topic(deployment, "events"), BAD),
    ):
        reader = CommittedReader(fogline.bootstrap, stream)
        assert len(reader.read(count, RECOVERY_S)) == count
        reader.close()

    expected = {
        "fogline_element_rows_in_total": {
            "events": GOOD + BAD,
            "thirds": GOOD,
            "twice": THIRDS,
            "alone": THIRDS,
        },
        "fogline_element_rows_out_total": {
            "events": GOOD,
            "thirds": THIRDS,
            "twice": THIRDS,
            "alone": THIRDS,
        },
        "fogline_element_dead_letters_total": {"events": BAD, "thirds": 0, "twice": 0, "alone": 0},
    }

    def told() -> bool:
        now = counters(client)
        # An element of which Spark alone saw the rows has no count; the last of each group has one.
        return all(
            now.get(name, {}).items() <= rows.items()
            and now.get(name, {}).keys() >= rows.keys() & {"three", "twice", "alone"}
            for name, rows in expected.items()
        )

    wait_until(told, lambda: f"the counters to be {expected}, not {counters(client)}", RECOVERY_S)
    found = counters(client)
    assert set(found["fogline_element_lag_rows"]) == {"three", "alone"}
    assert set(found["fogline_element_state_bytes"]) == {"three", "alone"}
