"""Who is told of an alarm, and when."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import ValidationError

from webapp.alarms.channels import SCHEMES, UrlRefused, checked, without_secrets
from webapp.alarms.routing import (
    Line,
    RouteSpec,
    Told,
    body_of,
    due,
    is_about,
    is_on_call,
    pause_s,
    subject_of,
)
from webapp.alarms.state import State

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)  # a Sunday
MINUTE = timedelta(minutes=1)
RAISED = State("warning", "hot", NOW, NOW)


def spec(**said: Any) -> RouteSpec:
    return RouteSpec.model_validate({"channels": [1], **said})


@pytest.mark.parametrize(
    ("span", "zone", "at", "is_in"),
    [
        ({"days": [6], "begins": "08:00", "ends": "17:00"}, "UTC", NOW, True),
        ({"days": [5], "begins": "08:00", "ends": "17:00"}, "UTC", NOW, False),
        ({"days": [6], "begins": "13:00", "ends": "17:00"}, "Europe/Vienna", NOW, True),
        ({"days": [6], "begins": "12:30", "ends": "13:00"}, "Europe/Vienna", NOW, False),
        ({"days": [5], "begins": "22:00", "ends": "06:00"}, "UTC", NOW.replace(hour=5), True),
        ({"days": [6], "begins": "22:00", "ends": "06:00"}, "UTC", NOW.replace(hour=5), False),
        ({"days": [6], "begins": "22:00", "ends": "06:00"}, "UTC", NOW.replace(hour=23), True),
        ({"days": [6]}, "UTC", NOW.replace(hour=0), True),
        ({"days": [5]}, "UTC", NOW.replace(hour=0), False),
    ],
)
def test_on_call_times_are_those_of_the_time_zone(span: Any, zone: str, at: datetime, is_in: bool) -> None:
    assert is_on_call(spec(on_call=[span], zone=zone), at) is is_in


def test_any_of_several_times_is_enough() -> None:
    weekdays = {"days": [0, 1, 2, 3, 4], "begins": "08:00", "ends": "16:00"}
    sunday = {"days": [6], "begins": "10:00", "ends": "12:00"}
    of = spec(on_call=[weekdays, sunday], zone="Europe/Vienna")  # an hour ahead of UTC
    found = [is_on_call(of, NOW.replace(hour=hour)) for hour in (8, 9, 10, 11)]
    assert found == [False, True, True, False]
    assert is_on_call(of, NOW.replace(hour=8) + timedelta(days=1))


@given(st.integers(0, 200), st.integers(0, 60), st.integers(0, 60), st.booleans(), st.booleans())
def test_it_is_repeated_and_escalated_in_time_until_somebody_knows(
    minutes: int, repeat: int, escalate: int, known: bool, escalated: bool
) -> None:
    of = spec(repeat_min=repeat, escalate_min=escalate, escalate_to=[2] if escalate else [])
    state = State("warning", "hot", NOW, NOW, acknowledged_at=NOW if known else None)
    told = Told(NOW, NOW, "warning", NOW if escalated else None)
    found = due(of, state, told, NOW + minutes * MINUTE)
    assert ("repeat" in found) == (not known and repeat > 0 and minutes >= repeat)
    assert ("escalation" in found) == (not known and not escalated and escalate > 0 and minutes >= escalate)


def test_what_was_raised_at_another_time_is_told_when_the_time_begins() -> None:
    of = spec(on_call=[{"days": [6], "begins": "13:00", "ends": "14:00"}])
    assert due(of, RAISED, None, NOW) == []
    assert due(of, RAISED, None, NOW + 60 * MINUTE) == ["raised"]


def test_what_got_worse_at_another_time_is_told_when_the_time_begins_also_without_repeats() -> None:
    of = spec(on_call=[{"days": [6], "begins": "13:00", "ends": "14:00"}], repeat_min=0)
    worse = State("critical", "hot", NOW, NOW)
    assert due(of, worse, Told(NOW, NOW, "warning"), NOW) == []
    assert due(of, worse, Told(NOW, NOW, "warning"), NOW + 60 * MINUTE) == ["worse"]
    assert due(of, worse, Told(NOW, NOW, "critical"), NOW + 60 * MINUTE) == []


def test_a_route_is_about_what_it_names() -> None:
    of = spec(severity="warning", pipelines=["p"], sites=["hall"])
    assert is_about(of, "critical", "p", "hall")
    assert is_about(of, "warning", "", "hall")  # of a node
    assert not is_about(of, "info", "p", "hall")
    assert not is_about(of, "critical", "q", "hall")
    assert not is_about(of, "critical", "p", "cloud")


@pytest.mark.parametrize(
    "wrong",
    [
        {"channels": []},
        {"channels": [*range(11)]},
        {"zone": "Mars/Olympus"},
        {"escalate_min": 5},
        {"escalate_to": [2]},
        {"repeat_min": 0.5},
        {"on_call": [{"days": [7]}]},
        {"on_call": [{"days": [1], "begins": "24:00"}]},
    ],
)
def test_a_route_that_makes_no_sense_is_refused(wrong: Any) -> None:
    with pytest.raises(ValidationError):
        spec(**wrong)


def test_a_message_says_the_worst_first() -> None:
    lines = [
        Line("warning", "b", "B", NOW, "", "link-b", "raised 2 times"),
        Line("critical", "c", "C", NOW, "", "link-c", "cleared after 3 s", is_cleared=True),
        Line("critical", "a", "A, site hall", NOW, "t 81", "link-a", "not cleared yet"),
    ]
    assert subject_of("raised", lines) == "[Fogline] critical: a (and 2 more)"
    text = body_of("raised", lines, "page")
    assert [text.index(f"link-{each}") for each in "abc"] == sorted(text.index(f"link-{e}") for e in "abc")
    since = "Since: 2026-11-29 12:00:00 UTC, not cleared yet"
    assert f"CRITICAL: a\nWhere: A, site hall\n{since}\nLast values: t 81\nlink-a" in text


def test_pauses_grow_up_to_five_minutes() -> None:
    pauses = [pause_s(n) for n in range(1, 20)]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (2.0, 300.0)


def test_each_scheme_that_is_allowed_is_one_of_apprise() -> None:
    import apprise

    known = {
        scheme
        for each in apprise.Apprise().details()["schemas"]
        for scheme in [*(each["protocols"] or ()), *(each["secure_protocols"] or ())]
    }
    assert SCHEMES.keys() <= known | {"msteams"}


@pytest.mark.parametrize(
    "url",
    [
        "mailtos://user:password@example.org?to=ann@example.org",
        "json://example.org:8080/path",
        "slack://TokenA123/TokenB123/TokenC1234567890123456/#general",
        "tgram://123456789:abcdefg_hijklmnop/12315544/",
        "mqtt://example.org/alarms",
    ],
)
def test_a_url_of_a_way_to_people_is_taken(url: str) -> None:
    assert checked(url) == url.partition("://")[0]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "mailto",
        "file:///x",
        "windows://",
        "exec://x",
        "json://a b",
        "json://h/?template=/x",
        "json://h/?a=b;template=/x",
        "json://h/?%20template=/x",
    ],
)
def test_another_url_is_refused_without_its_text(url: str) -> None:
    with pytest.raises(UrlRefused) as refused:
        checked(url)
    assert "/x" not in str(refused.value)


def test_what_went_wrong_is_told_without_the_secrets() -> None:
    url = "jsons://user:pass%40word@example.org/tokenpath?key=hidden"
    said = "example.org: 401 for user with pass@word at /tokenpath?key=hidden (pass%40word)"
    assert without_secrets(said, url) == "example.org: 401 for … with … at /…?key=… (…)"
