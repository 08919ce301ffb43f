"""Tests the forecast of a move. It is computed from the most similar earlier moves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from webapp.handovers.forecast import (
    TYPICAL_OWNS_MS,
    TYPICAL_PAUSE_MS,
    TYPICAL_READY_MS,
    Past,
    forecast_json,
    start_on,
)
from webapp.placements.group_state import GroupFacts, NodeFacts, ReplicaFacts

HERE = ReplicaFacts("a", "owner", 1, 9, {"checkpoint_bytes": 79_700, "checkpoint_where": ["a", "b"]})
GROUP = GroupFacts(
    group="power",
    deployment_status="running",
    node="a",
    replicas=(HERE,),
    nodes={name: NodeFacts(name, True, True, None) for name in "abc"},
)
MOVE = Past("machines", "power", "b", "standby", "warm", 8_000, 120)
ELSEWHERE = replace(MOVE, pipeline="other", group="sum", target="c")


def forecast(past: list[Past], node: str = "b", way: str = "standby", busy: str = "ab") -> Any:
    return forecast_json(past, "machines", GROUP, busy)[node][way]


def once(ms: int, basis: str = "group", n: int = 1) -> dict[str, Any]:
    """What is expected when there is one figure."""
    return {"ms": ms, "least_ms": ms, "most_ms": ms, "basis": basis, "n": n}


def test_the_median_of_this_groups_newest_moves() -> None:
    past = [replace(MOVE, ready_ms=ms) for ms in (7_000, 9_000, 60_000, 8_000, 8_500, 1, 1, 1)]
    assert forecast(past)["ready"] == {
        "ms": 8_500,
        "least_ms": 7_000,
        "most_ms": 60_000,
        "basis": "group",
        "n": 5,
    }


@pytest.mark.parametrize(
    ("past", "basis"),
    [
        ([ELSEWHERE, MOVE], "group"),
        ([ELSEWHERE, replace(ELSEWHERE, target="b")], "node"),
        ([replace(ELSEWHERE, pipeline="machines"), ELSEWHERE], "pipeline"),
        ([ELSEWHERE], "typical"),
        ([], "typical"),
    ],
)
def test_else_of_that_node_else_of_the_pipeline_else_what_is_typical(past: list[Past], basis: str) -> None:
    expected = forecast(past)
    assert (expected["ready"]["basis"], expected["pause"]["basis"]) == (basis, basis)


def test_only_moves_that_began_alike_tell_how_long_getting_ready_takes() -> None:
    past = [replace(MOVE, start="follows", ready_ms=900), replace(MOVE, start="cold", ready_ms=5)]
    warm, cold = forecast(past), forecast(past, busy="a")
    assert warm["ready"] == once(TYPICAL_READY_MS["warm"], "typical", 0)
    assert cold["ready"]["ms"] == 5
    assert warm["pause"]["basis"] == "group", "the pause is the same however it began"


def test_a_stop_and_copy_prepares_nothing_and_pauses_for_as_long_as_it_takes() -> None:
    past = [replace(MOVE, strategy="stop-and-copy", pause_ms=4_000)]
    expected = forecast(past, way="stop-and-copy")
    assert (expected["ready"], expected["pause"]["ms"]) == (None, 4_000)
    cold = forecast(past, way="stop-and-copy", busy="a")
    assert cold["pause"]["ms"] == TYPICAL_PAUSE_MS["stop-and-copy"]["cold"]


def test_what_the_target_has_is_said() -> None:
    nodes = forecast_json([], "machines", GROUP, {"a", "c"})
    assert list(nodes) == ["b", "c"]
    assert (nodes["b"]["start"], nodes["b"]["had"], nodes["b"]["bytes"]) == ("cold", True, 79_700)
    assert (nodes["c"]["start"], nodes["c"]["had"]) == ("warm", False)


def test_a_copy_that_has_failed_does_not_follow() -> None:
    standby = ReplicaFacts("b", "standby", 1, 9)
    assert start_on(replace(GROUP, replicas=(HERE, standby)), "b", ()) == "follows"
    broken = replace(standby, status={"error": {"message": "disk full"}})
    assert start_on(replace(GROUP, replicas=(HERE, broken)), "b", "b") == "warm"


STANDBY = ReplicaFacts("b", "standby", 1, 9)
BY_STANDBY = replace(MOVE, strategy="hot-standby", start="follows", ready_ms=700, pause_ms=None)
BY_CHECKPOINT = replace(MOVE, strategy="checkpoint", ready_ms=4_000, pause_ms=None)


def restored(past: list[Past], node: str = "b", busy: str = "ab", *, standby: bool = False) -> Any:
    group = replace(GROUP, replicas=(HERE, STANDBY)) if standby else GROUP
    return forecast_json(past, "machines", group, busy)[node]["restore"]


def test_a_restoration_is_told_by_earlier_ones_of_its_kind() -> None:
    found = restored([BY_STANDBY, BY_CHECKPOINT, replace(BY_CHECKPOINT, strategy="rewind", ready_ms=900)])
    assert found["checkpoint"] == once(4_000)
    assert found["rewind"]["ms"] == 900
    assert found["hot-standby"] is None, "no standby follows there"
    followed = restored([BY_STANDBY, BY_CHECKPOINT], standby=True)
    assert followed["hot-standby"] == once(700)
    assert followed["checkpoint"]["ms"] == 4_000, "a node with a standby is as warm as any other"


def test_a_restoration_that_nothing_is_known_of_takes_what_is_typical() -> None:
    found = restored([MOVE], standby=True)
    typical = {
        way: once(ms, "typical", 0)
        for way, ms in (("hot-standby", 500), ("checkpoint", 3_000), ("rewind", 1_000))
    }
    assert found == typical
    cold = restored([BY_CHECKPOINT], busy="a")
    assert cold["checkpoint"]["ms"] == TYPICAL_OWNS_MS["checkpoint"]["cold"]


def test_restorations_say_nothing_of_migrations() -> None:
    assert forecast([BY_STANDBY, BY_CHECKPOINT])["ready"]["basis"] == "typical"
