"""Tests the list of present troubles: one line for each lasting trouble, and none for a past one."""

from __future__ import annotations

from typing import Any

import pytest

from webapp.backends.control_state import CLOCK, ControlState
from webapp.monitoring.attention import attention
from webapp.pipelines.shape import goes_by_clock

WORKS = ControlState()
SINCE = "2026-11-20T12:00:00+00:00"


def node(name: str, **changes: Any) -> dict[str, Any]:
    fine = {"up": True, "silent_at": None, "last_seen_at": SINCE, "alerts": [], "drain_blocked": None}
    return {"name": name, "draining_since": None, "leaving_until": None} | fine | changes


def pipeline(**changes: Any) -> dict[str, Any]:
    return {"name": "p", "title": "p", "status": "running", "message": "", "upgrade_failed": None} | changes


def element(id: str, **changes: Any) -> dict[str, Any]:
    return {
        "id": id,
        "group": id,
        "group_title": changes.get("group", id).title(),
        "status": "running",
        "node": "a",
        "error": None,
        "title": changes.get("group", id).title(),
        "by_clock": False,
        "dead_letters_open": 0,
        "replicas": [],
    } | changes


def lines(*nodes: dict[str, Any], elements: Any = (), **of_pipeline: Any) -> list[str]:
    found = attention(nodes, [pipeline(**of_pipeline)], {"p": list(elements)}, WORKS)
    return [line["message"] for line in found]


def test_where_all_is_well_there_is_nothing() -> None:
    assert lines(node("a"), elements=[element("power")]) == []


def test_rows_that_could_not_be_taken_need_attention_until_none_of_them_is_open() -> None:
    ended = element("replay", status="ended", dead_letters_open=1008)
    assert lines(node("a"), elements=[ended, element("mean")], status="ended") == [
        "Replay of p could not take 1,008 rows: they wait under Dead letters, with the reason."
    ]


def test_a_pipeline_is_called_as_people_call_it() -> None:
    silent = element("power", status="silent")
    found = lines(
        node("a", up=False, silent_at=SINCE),
        node("b"),
        elements=[silent, element("mean", node="b", status="lagging")],
        title="Fräsen Überwachung",
    )
    assert "It should run Power of Fräsen Überwachung: " in found[0]
    assert found[1].startswith("Mean of Fräsen Überwachung cannot keep up")


def test_what_a_policy_advises_comes_last_and_only_while_nodes_are_heard() -> None:
    said: Any = {"title": "Power of p", "target": "b", "why": "a is busy.", "since": SINCE, "node": "a"}
    said |= {"pipeline": "p", "element": "power", "code": "move", "group": "D.power"}
    [line] = attention([node("a")], [pipeline()], {}, WORKS, [("busy", said)])
    assert line["message"] == "busy advises to move Power of p to b. a is busy."
    assert (line["element"], line["at"], line["move_to"]) == ("power", SINCE, "b")
    away = attention([node("a")], [pipeline()], {}, ControlState(away="Away."), [("busy", said)])
    assert [line["message"] for line in away] == ["Away."]


def test_a_nodes_alerts_come_first_with_the_time_since_when_they_are() -> None:
    full = {"message": "The disk is full.", "since": SINCE}
    failed = element("power", status="failed", error={"message": "boom.", "next": "Mend it.", "at": SINCE})
    first, second = attention([node("a", alerts=[full])], [pipeline()], {"p": [failed]}, WORKS)
    assert (first["message"], first["at"], first["node"]) == ("a: The disk is full.", SINCE, "a")
    assert second["message"] == "Power has failed on a: boom. Mend it."
    assert (second["severity"], second["pipeline"], second["element"]) == ("error", "p", "power")


def test_a_silent_node_is_one_line_that_names_what_waits() -> None:
    waiting = [element(id, group="g", status="silent") for id in ("x", "y")]
    [line] = lines(node("a", up=False, silent_at=SINCE), elements=waiting)
    assert line.startswith("a does not answer. It should run G of p: ")
    [line] = lines(node("a", up=False), elements=waiting)
    assert line.startswith("a was stopped. It should run G of p: ")


def test_what_is_restored_from_a_silent_node_is_still_to_run_there() -> None:
    restoring = [element("power", status="restoring"), element("other", status="moving", node="b")]
    [line] = lines(node("a", up=False, silent_at=SINCE), elements=restoring)
    assert line.startswith("a does not answer. It should run Power of p: ")


def test_a_silent_node_says_what_another_one_is_taking_over_from_it() -> None:
    copies = [{"node": "a", "role": "owner"}, {"node": "b", "role": "standby"}]
    restoring = element("power", status="restoring", node="b", replicas=copies)
    first, second = lines(node("a", up=False, silent_at=SINCE), node("b"), elements=[restoring])
    assert first == "a does not answer. On other nodes, this is being restored: Power of p."
    assert second == "Power of p does not process now: it is being restored."


def test_a_group_that_is_called_by_its_elements_is_several_and_leads_to_the_first() -> None:
    both = [element(id, group="g", group_title="Mean and Alarm", status="restoring") for id in ("x", "y")]
    [line] = attention([node("a")], [pipeline()], {"p": both}, WORKS)
    assert line["message"] == "Mean and Alarm of p do not process now: they are being restored."
    assert line["element"] == "x"


def test_what_does_not_process_on_a_node_that_answers_is_told() -> None:
    starting = [element(id, status="starting") for id in ("x", "y")]
    [line] = lines(node("a"), elements=starting)
    assert line == "X and Y of p do not process now: they are being started on the node again."
    [line] = lines(node("a"), elements=[element("x", status="restoring")])
    assert line == "X of p does not process now: it is being restored."


def test_a_node_that_was_stopped_on_purpose_is_no_trouble_and_a_silent_one_is() -> None:
    assert lines(node("a", up=False)) == []
    [line] = lines(node("a", up=False, silent_at=SINCE))
    assert "remove it" in line


def test_a_group_of_several_elements_fails_once() -> None:
    error = {"message": "boom.", "next": "Mend it.", "at": SINCE}
    both = [element(id, group="watch", status="failed", error=error) for id in ("x", "y")]
    assert len(lines(node("a"), elements=both)) == 1


def test_what_lags_what_cannot_leave_and_what_was_not_deployed_are_told() -> None:
    [line] = lines(node("a"), elements=[element("x", status="lagging"), element("y", status="lagging")])
    assert line.startswith("X and Y of p cannot keep up")
    [line] = lines(node("a", drain_blocked="x: no room.", draining_since=SINCE))
    assert line.endswith("cannot move now: x: no room.")
    [line] = lines(node("a", drain_blocked="x: no room.", leaving_until=SINCE))
    assert line.startswith(
        "a is leaving, and these elements cannot move now: x: no room. They stop with the node"
    )
    [line] = lines(node("a"), status="failed", message="x does not start.")
    assert line == "p was not deployed: x does not start."


def test_one_that_is_held_can_be_restored_with_one_click_where_another_node_runs() -> None:
    error = {"message": "It is held.", "next": "Restore it.", "at": SINCE, "code": "nodes-fell-silent"}
    held = element("power", status="failed", error=error)
    silent = node("a", up=False, silent_at=SINCE)
    *_, line = attention([silent, node("b")], [pipeline()], {"p": [held]}, WORKS)
    assert (line["kind"], line["restore_to"]) == ("element.failed", "b")
    *_, line = attention([silent], [pipeline()], {"p": [held]}, WORKS)
    assert "restore_to" not in line


def test_elements_that_do_not_go_on_are_told_together_with_what_they_wait_for() -> None:
    error = {"message": "It makes no progress: it waits for Kafka.", "next": "", "at": SINCE, "code": None}
    stalled = [element(id, status="stalled", error=error) for id in ("power", "heat")]
    [line] = attention([node("a")], [pipeline()], {"p": stalled}, WORKS)
    assert line["message"] == "Power and Heat of p: It makes no progress: it waits for Kafka."
    assert (line["at"], line["kind"]) == (SINCE, "element.stands")


def test_a_wrong_clock_is_told_with_the_elements_that_go_by_it() -> None:
    alert = {"message": f"{CLOCK}several seconds behind Redis's.", "since": SINCE}
    wrong = [node("a", alerts=[alert]), node("b")]
    elements = [element("plant", by_clock=True), element("mean"), element("far", by_clock=True, node="b")]
    [text] = lines(*wrong, elements=elements)
    assert "Plant of p goes by it: its rows have wrong times" in text
    assert "Far" not in text
    [text] = lines(*wrong, elements=[element("mean")])
    assert text.endswith("No element there goes by its clock.")


@pytest.mark.parametrize(
    ("type_", "params", "expected"),
    [
        ("generator", {}, True),
        ("csv-replay", {}, True),
        ("csv-replay", {"restamp": False}, False),
        ("kafka-in", {"topic": "t"}, False),
        ("derive", {"columns": [{"name": "age", "expression": "_batch_time - at"}]}, True),
        ("filter", None, False),
    ],
)
def test_what_goes_by_its_nodes_clock_is_known_by_type_and_parameters(
    type_: str, params: Any, expected: bool
) -> None:
    assert goes_by_clock({"id": "e", "type": type_, "params": params}) is expected
