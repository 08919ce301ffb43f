"""Tests the parameters that a user fills in for Sparkplug B."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline_runtime.operators.mqtt import MqttIn, MqttInParams


def params(**fields: Any) -> MqttInParams:
    given = {"connection": "b", "payload": "sparkplug", "topics": ["spBv1.0/plant/#"], **fields}
    return MqttInParams.model_validate({"columns": [{"name": "t"}], **given})


def test_columns_hold_metrics_by_their_names_and_what_is_historical() -> None:
    columns = [
        {"name": "t"},
        {"name": "led", "from": "Outputs/LED.green"},
        {"name": "odd", "from": '["a[0]"]'},
        {"name": "kind", "level": 3},
    ]
    operator = MqttIn(params(columns=columns, historical="late"))
    reading = operator.reading()
    assert [each.path for each in reading.columns] == [
        ("value", "t"),
        ("value", "Outputs/LED.green"),
        ("value", "a[0]"),
        ("levels", 2),
        ("historical",),
    ]
    assert operator.output_schema({}).names[-1] == "late"
    assert reading.time is not None
    assert (reading.time.path, reading.time.format) == (("time",), "us")


@pytest.mark.parametrize(
    "wrong",
    [
        {"topics": ["plant/#"]},
        {"topics": ["spBv1.0/#", "#"]},
        {"time": {"from": "t"}},
        {"payload": "json", "historical": "h"},
        {"payload": "json", "host_id": "h"},
        {"host_id": "a/b"},
        {"host_id": ""},
    ],
)
def test_what_does_not_fit_sparkplug_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        params(**wrong)


def test_topics_that_several_share_are_topics_of_sparkplug_too() -> None:
    assert params(topics=["$share/g/spBv1.0/plant/#"]).topics
