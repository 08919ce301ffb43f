"""Tests what the rows of alert elements mean for alarms."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from webapp.alarms.rows import KEY_MAX, VALUES_MAX, plain_key, said
from webapp.alarms.state import Clear, Raise

NOW = datetime(2026, 11, 29, tzinfo=UTC)
HYSTERESIS = {"machine": "m1", "alarm": "raised", "temperature": 81.5, "since": 1000, "worst": 82.0}


def test_a_row_that_says_so_raises_or_clears() -> None:
    found = said(HYSTERESIS, "Too hot", "m1", NOW, ends=True)
    assert isinstance(found, Raise)
    assert found.severity == "warning"
    assert found.message == "Too hot, m1: temperature 81.5, since 1000, worst 82"
    assert found.values["temperature"] == 81.5
    serious = said(HYSTERESIS, "Too hot", "m1", NOW, ends=True, severity="critical")
    assert isinstance(serious, Raise)
    assert serious.severity == "critical"
    of_row = said(
        HYSTERESIS | {"alert_severity": "info"}, "Too hot", "m1", NOW, ends=True, severity="critical"
    )
    assert isinstance(of_row, Raise)
    assert of_row.severity == "info"
    assert isinstance(said(HYSTERESIS | {"alarm": "cleared"}, "Too hot", "m1", NOW, ends=True), Clear)
    for other in (HYSTERESIS | {"alarm": None}, {}, {"alarm": 1}):
        assert said(other, "Too hot", "m1", NOW, ends=True) is None


def test_a_message_leaves_out_what_has_no_value_and_says_times_to_the_second() -> None:
    row = {"machine": "M3", "alarm": "raised", "temperature": 85.4, "lasted": None, "worst": 85.4}
    found = said(row | {"since": "2026-11-30T21:47:43.057000Z"}, "Too hot", "M3", NOW, ends=True)
    assert isinstance(found, Raise)
    assert found.message == "Too hot, M3: temperature 85.4, worst 85.4, since 2026-11-30 21:47:43 UTC"
    assert found.values["since"] == "2026-11-30T21:47:43.057000Z"


def test_a_value_that_is_the_same_text_as_the_key_stays_in_the_message() -> None:
    row = {"machine": "3", "alarm": "raised", "count": 3}
    found = said(row, "Too many", "3", NOW, ends=True)
    assert isinstance(found, Raise)
    assert found.message == "Too many, 3: count 3"
    alert = {"machine": 5, "power": 5, "alert_column": "power", "alert_value": 5, "alert_limit": 5}
    found = said(alert, "Limit", "5", NOW, ends=False)
    assert isinstance(found, Raise)
    assert found.message == "Limit, 5: power 5, limit 5"


def test_each_row_of_a_threshold_alert_raises() -> None:
    row = {
        "power": 99.0,
        "alert_column": "power",
        "alert_value": 99.0,
        "alert_limit": 30.0,
        "alert_severity": "critical",
        "alert_message": "power is 99 (> 30)",
    }
    found = said(row, "Limit", "m1", NOW, ends=False)
    assert found == Raise(NOW, "critical", "power is 99 (> 30) (m1)", {"power": 99.0, "limit": 30.0})
    unsaid: Any = said(row | {"alert_severity": "huge", "alert_message": None}, "Limit", "", NOW, ends=False)
    assert (unsaid.severity, unsaid.message) == ("warning", "Limit: power 99, limit 30")


def test_what_an_alarm_keeps_of_a_row_is_bounded() -> None:
    row = {f"{n}{'x' * 500}": "y" * 5000 for n in range(100)} | {"nested": {"a": [1] * 5000}}
    found = said(row, "t" * 500, "k" * 500, NOW, ends=False)
    assert isinstance(found, Raise)
    assert len(found.values) == VALUES_MAX
    assert len(found.message) == 500
    assert max(len(name) + len(str(value)) for name, value in found.values.items()) <= 280


def test_what_a_database_does_not_take_is_replaced() -> None:
    found = said({"a\0": "b\ud800\0"}, "Hot", plain_key("m\0\ud800"), NOW, ends=False)
    assert isinstance(found, Raise)
    for text in (found.message, *found.values, *found.values.values(), plain_key("m\0\ud800")):
        assert "\0" not in text
        text.encode()  # fails for half a character


def test_long_keys_that_begin_alike_are_two() -> None:
    one, other = ("m" * 300 + each for each in "ab")
    assert plain_key(one) != plain_key(other)
    assert len(plain_key(one)) == KEY_MAX
    assert plain_key("m1") == "m1"
