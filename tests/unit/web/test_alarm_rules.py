"""When a rule raises an alarm and clears it, and what it looks at."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from pipeline_runtime.model.connectors import SPOOL_BYTES_MAX
from webapp.alarms.facts import OF_CONNECTORS, subjects
from webapp.alarms.rules import MetricRule, Subject, is_about, is_awaited, judge, message_of

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
LAG = {"metric": "lag_rows", "raise_at": 100, "clear_at": 50, "for_s": 10, "clear_for_s": 5}


def rule(**said: Any) -> MetricRule:
    return MetricRule.model_validate(said)


def acts(of: MetricRule, values: list[float | None]) -> list[str | None]:
    """What the rule does at each of the values, one a second."""
    is_open, since_s, found = False, None, []
    for now_s, value in enumerate(values):
        verdict = judge(of, value, is_open=is_open, now_s=float(now_s), since_s=since_s)
        since_s = verdict.since_s
        is_open = verdict.act == "raise" or (is_open and verdict.act != "clear")
        found.append(verdict.act)
    return found


def test_it_is_raised_after_the_time_and_cleared_below_the_other_limit() -> None:
    found = acts(rule(**LAG), [101.0] * 11 + [75.0] * 20 + [50.0] * 6)
    assert [(n, act) for n, act in enumerate(found) if act] == [(10, "raise"), (36, "clear")]


def test_a_break_begins_the_time_anew_and_so_does_what_is_not_known() -> None:
    for gap in (99.0, None):
        found = acts(rule(**LAG), [101.0] * 9 + [gap] + [101.0] * 11)
        assert [(n, act) for n, act in enumerate(found) if act] == [(20, "raise")]


def test_an_alarm_stays_while_the_value_is_not_known() -> None:
    found = acts(rule(**LAG), [101.0] * 11 + [None] * 100)
    assert [act for act in found if act] == ["raise"]


@given(st.lists(st.one_of(st.none(), st.floats(0, 200)), max_size=60), st.booleans())
def test_it_never_raises_twice_without_a_clear(values: list[float | None], below: bool) -> None:
    of = rule(**LAG) if not below else rule(metric="rate_low", raise_at=50, clear_at=100, for_s=2)
    found = [act for act in acts(of, values) if act]
    assert found == [("raise", "clear")[n % 2] for n in range(len(found))]


def test_a_flag_needs_no_limit() -> None:
    assert acts(rule(metric="node_silent"), [0.0, 1.0, 1.0, 0.0]) == [None, "raise", None, "clear"]
    assert message_of(rule(metric="node_silent"), Subject(title="edge-b"), 1.0) == "edge-b does not answer."


def test_a_message_says_what_how_much_and_the_limit() -> None:
    said = message_of(rule(**LAG), Subject(title="Mean of Hall"), 12345.0)
    assert said == "12,345 rows wait for Mean of Hall (more than 100)."


@pytest.mark.parametrize(
    "wrong",
    [
        {"metric": "lag_rows", "raise_at": 100, "clear_at": 101},
        {"metric": "rate_low", "raise_at": 100, "clear_at": 99},
        {"metric": "node_silent", "pipeline": "p"},
        {"metric": "lag_rows", "element": "power"},
        {"metric": "lag_rows", "raise_at": float("nan")},
        {"metric": "lag_rows", "for_s": 8 * 86_400},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        rule(**wrong)


def _element(id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": id,
        "title": id.title(),
        "status": "running",
        "node": "edge-a",
        "heard": True,
        "lag_rows": 3,
        "latency_ms_p95": 40.0,
        "rows_in_per_s": None,
        "rows_out_per_s": 5.0,
        "last_row_at": "2026-11-29T11:59:00+00:00",
        "owner_since": "2026-11-29T11:00:00+00:00",
        "resumed_at": None,
        "dead_letters_open": 0,
        "error": None,
        "connector": None,
    } | changes


def _node(name: str, **changes: Any) -> dict[str, Any]:
    load = {"disk_ratio": 0.91, "cpu_ratio": 0.5}
    return {"name": name, "site": "", "heard": True, "up": True, "silent_at": None, "load": load} | changes


def test_what_is_looked_at_has_the_values_that_are_known() -> None:
    silent = _node("edge-b", up=False, silent_at="2026-11-29T11:00:00+00:00", site="hall")
    elements = [
        ("p", "Hall", _element("power")),
        ("p", "Hall", _element("rests", status="paused")),
        ("p", "Hall", _element("never", last_row_at=None)),
        ("p", "Hall", _element("paused", resumed_at="2026-11-29T11:59:30+00:00")),
        ("p", "Hall", _element("moved", last_row_at=None, resumed_at="2026-11-26T11:00:00+00:00")),
        ("p", "Hall", _element("comes", last_row_at=None, owner_since=None, status="starting")),
        ("p", "Hall", _element("broken", status="failed", heard=False, node="edge-b")),
        ("p", "Hall", _element("chart", status="view")),
    ]
    found = subjects(elements, [_node("edge-a"), silent], NOW)
    by_title = {subject.title: (subject, known.values) for subject, known in found.items()}
    elements_of_hall = {
        f"{each} of Hall" for each in ("Power", "Rests", "Never", "Paused", "Moved", "Comes", "Broken")
    }
    assert set(by_title) == {*elements_of_hall, "edge-a", "edge-b"}
    power, values = by_title["Power of Hall"]
    assert (power.node, power.site) == ("edge-a", "edge-a")
    assert (values["no_rows_s"], values["rate_low"], values["element_failed"]) == (60.0, 5.0, 0.0)
    # One that never had a row counts from when it runs.
    assert by_title["Never of Hall"][1]["no_rows_s"] == 3600.0
    # A pause is no time without rows.
    assert by_title["Paused of Hall"][1]["no_rows_s"] == 30.0
    # Nor does one of long ago count where the last row is not known.
    assert by_title["Moved of Hall"][1]["no_rows_s"] == 3600.0
    assert by_title["Comes of Hall"][1]["no_rows_s"] is None
    # An element that rests on purpose is not too slow.
    assert by_title["Rests of Hall"][1]["no_rows_s"] is by_title["Rests of Hall"][1]["rate_low"] is None
    assert by_title["Broken of Hall"][1]["element_failed"] == 1.0
    assert by_title["edge-b"][1] == {
        "node_silent": 1.0,
        "disk_percent": None,
        "cpu_percent": None,
        "memory_percent": None,
    }
    assert by_title["edge-a"][1]["disk_percent"] == pytest.approx(91)
    node = by_title["edge-b"][0]
    assert is_about(rule(metric="node_silent"), node)
    assert not is_about(rule(metric="lag_rows"), node)
    assert is_about(rule(metric="lag_rows", pipeline="p", element="power"), power)
    assert not is_about(rule(metric="lag_rows", pipeline="p", element="rests"), power)
    assert not is_about(rule(metric="lag_rows", node="edge-b"), power)


def _connector(**changes: Any) -> dict[str, Any]:
    return {
        "state": "connected",
        "gaps_total": 0,
        "gap_rows_total": 0,
        "gap_at": None,
        "spool_bytes": 0,
        "trouble": None,
    } | changes


def _of_connector(connector: dict[str, Any] | None, **changes: Any) -> tuple[list[float | None], list[str]]:
    """Returns the values by which rules judge a connector, and what they say of it."""
    elements = [("p", "Hall", _element("press", connector=connector, **changes))]
    [(subject, known)] = subjects(elements, [], NOW).items()
    values = [known.values[metric] for metric in OF_CONNECTORS]
    flags = ("connector_failing", "rows_lost")
    said = [message_of(rule(metric=each), subject, 1.0, known.reasons.get(each, "")) for each in flags]
    return values, said


def test_a_connector_fails_from_one_event_to_the_other_and_loses_rows_for_some_minutes() -> None:
    assert _of_connector(_connector())[0] == [0.0, 0.0, 0.0]
    # It may be connected for a moment between two failures.
    flaps = _connector(trouble="Nobody listens at 10.0.0.1:4840.")
    values, [fails, _] = _of_connector(flaps)
    assert values == [1.0, 0.0, 0.0]
    assert fails == "The connector of Press of Hall fails. Nobody listens at 10.0.0.1:4840."
    lost = _connector(gaps_total=3, gap_rows_total=1200, gap_at="2026-11-29T11:55:01+00:00")
    values, [_, loses] = _of_connector(lost)
    assert values == [0.0, 1.0, 0.0]
    assert loses == "The connector of Press of Hall has lost rows. Gaps so far: 3, with 1,200 rows or more."
    assert _of_connector(lost | {"gap_at": "2026-11-29T11:55:00+00:00"})[0] == [0.0, 0.0, 0.0]
    assert _of_connector(_connector(spool_bytes=SPOOL_BYTES_MAX // 2))[0] == [0.0, 0.0, 50.0]


def test_a_connector_that_is_gone_has_no_alarm_and_one_that_is_not_heard_keeps_it() -> None:
    assert _of_connector(None, status="stopped")[0] == [0.0, 0.0, 0.0]
    for status, heard in (("moving", True), ("starting", True), ("unheard", False), ("silent", False)):
        assert _of_connector(None, status=status, heard=heard)[0] == [None, None, None]


@pytest.mark.parametrize(("for_s", "awaited_s"), [(60, 90), (3600, 330)])
def test_an_elements_alarm_waits_for_that_of_its_node_and_never_for_long(
    for_s: float, awaited_s: float
) -> None:
    silent = rule(metric="node_silent", for_s=for_s)
    for seconds, awaited in ((awaited_s - 1, True), (awaited_s, False)):
        assert is_awaited(silent, "edge-a", NOW - timedelta(seconds=seconds), NOW) == awaited
