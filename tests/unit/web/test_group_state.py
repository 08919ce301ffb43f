"""Tests which actions a group allows, and the reason that the page gives for each other action."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from webapp.placements.group_state import (
    GroupFacts,
    NodeFacts,
    ReplicaFacts,
    StandbyFacts,
    actions_of,
    checkpoint_refusal,
    drop_standby_refusal,
    keep_standby_refusal,
    migrate_refusal,
    pause_refusal,
    restoration_strategy,
    restore_refusal,
    resume_refusal,
    standby_target,
    status_of,
)


def node(name: str, **changes: Any) -> NodeFacts:
    return replace(NodeFacts(name, up=True, ready=True, closed=None), **changes)


def group(**changes: Any) -> GroupFacts:
    """A group that runs on a, with b free and c cordoned."""
    running = GroupFacts(
        group="power",
        deployment_status="running",
        node="a",
        replicas=(ReplicaFacts("a", "owner", 1, 10, {"lag_rows": 0}, {"rows_in_per_s": 100.0}),),
        nodes={"a": node("a"), "b": node("b"), "c": node("c", closed="cordoned")},
    )
    return replace(running, **changes)


def with_status(**status: Any) -> GroupFacts:
    return group(replicas=(ReplicaFacts("a", "owner", 1, 10, status, {"rows_in_per_s": 100.0}),))


STALLED = {"why": "it waits for Kafka", "since_ms": 1}
DOWN = {"a": node("a", up=False), "b": node("b")}
UNHEARD = {"a": node("a", heard=False), "b": node("b", heard=False)}


@pytest.mark.parametrize(
    ("facts", "status"),
    [
        (group(), "running"),
        (group(deployment_status=None, node=None), "draft"),
        (group(deployment_status="deploying", node=None), "deploying"),
        (group(deployment_status="failed", node=None), "failed"),
        (group(deployment_status="deploying", replicas=()), "deploying"),
        (group(upgrading=True, replicas=()), "deploying"),
        (group(replicas=()), "starting"),
        (group(replicas=(ReplicaFacts("a", "standby", 1, 1),)), "starting"),
        (group(handover="x"), "moving"),
        (group(handover="x", nodes=DOWN), "silent"),
        (group(handover="x", restoring=True, nodes=DOWN), "restoring"),
        (group(handover="x", restoring=True), "restoring"),
        (group(nodes=DOWN), "silent"),
        (group(nodes={"a": node("a", up=False, heard=False)}), "silent"),
        (group(nodes=UNHEARD), "unheard"),
        (group(handover="x", nodes=UNHEARD), "moving"),
        (group(paused=True), "running"),
        (with_status(paused=True), "paused"),
        (group(role="stopped"), "stopped"),
        (group(retire=True), "stopped"),
        (with_status(ended=True), "ended"),
        (with_status(error={"message": "x"}), "failed"),
        (with_status(lag_rows=150), "running"),
        (with_status(lag_rows=5000), "lagging"),
        (with_status(stalled=STALLED, lag_rows=5000), "stalled"),
        (with_status(stalled=STALLED, paused=True), "paused"),
        (replace(with_status(stalled=STALLED), paused=True), "stalled"),
        (with_status(stalled=STALLED, ended=True), "ended"),
        (group(replicas=(ReplicaFacts("a", "standby", 1, 1, {"stalled": STALLED}),)), "stalled"),
        (group(held={"message": "x"}, nodes=DOWN), "failed"),
        (group(held={"message": "x"}, handover="x", restoring=True), "restoring"),
    ],
)
def test_a_group_has_one_status(facts: GroupFacts, status: str) -> None:
    assert status_of(facts) == status


@pytest.mark.parametrize(
    ("facts", "target", "strategy", "words"),
    [
        (group(), "b", "stop-and-copy", None),
        (group(), None, "stop-and-copy", None),
        (group(), "nowhere", "stop-and-copy", "there is no node nowhere"),
        (group(), "a", "stop-and-copy", "already runs on a"),
        (group(), "c", "stop-and-copy", "cordoned"),
        (group(nodes={"a": node("a"), "b": node("b", up=False)}), "b", "stop-and-copy", "does not answer"),
        (group(nodes={"a": node("a")}), None, "stop-and-copy", "no other node"),
        (group(nodes=DOWN), "b", "stop-and-copy", "restore it elsewhere"),
        (group(handover="x"), "b", "stop-and-copy", "already being moved"),
        (group(deployment_status=None), "b", "stop-and-copy", "not deployed"),
        (group(deployment_status="deploying"), "b", "stop-and-copy", "still being deployed"),
        (group(deployment_status="undeploying"), "b", "stop-and-copy", "undeployed"),
        (group(replicas=()), "b", "stop-and-copy", "not started"),
        (with_status(error={"message": "x"}), "b", "stop-and-copy", "has failed on a"),
        (group(), "b", "standby", None),
        (group(), "b", None, None),
        (group(follow="none"), "b", "standby", "a standby cannot follow it"),
        (group(follow="none"), "b", None, None),
        (group(), "b", "teleport", "no strategy teleport"),
    ],
)
def test_a_migration_is_offered_or_refused_with_the_reason(
    facts: GroupFacts, target: str | None, strategy: str | None, words: str | None
) -> None:
    refusal = migrate_refusal(facts, target, strategy)
    assert refusal is None if words is None else words in (refusal or "")


@pytest.mark.parametrize("nodes", [group().nodes, {**DOWN}])
def test_a_restoration_is_offered_whatever_its_own_node_does(nodes: dict[str, NodeFacts]) -> None:
    assert restore_refusal(group(nodes=nodes), "b") is None
    assert actions_of(group(nodes=nodes))["restore"]["allowed"]


def test_a_restoration_of_an_operator_that_is_not_deterministic_says_so() -> None:
    restore = actions_of(group(follow="none"))["restore"]
    assert restore["allowed"]
    assert "may differ" in restore["note"]


def following(name: str, seq: int, **status: Any) -> ReplicaFacts:
    return ReplicaFacts(name, "standby", 1, seq, status)


def with_standbys(*replicas: ReplicaFacts, **changes: Any) -> GroupFacts:
    owner = group().replicas
    nodes = {name: node(name) for name in "abde"}
    standbys = tuple(StandbyFacts(replica.node) for replica in replicas)
    return group(**{"replicas": (*owner, *replicas), "standbys": standbys, "nodes": nodes} | changes)


@pytest.mark.parametrize(
    ("law", "facts", "target"),
    [
        ("no standby", with_standbys(), None),
        ("the standby that is furthest", with_standbys(following("d", 8), following("e", 9)), "e"),
        ("one that has failed", with_standbys(following("e", 9, error={"message": "x"})), None),
        (
            "one whose node is down",
            with_standbys(
                following("e", 9), nodes={"a": node("a"), "b": node("b"), "e": node("e", up=False)}
            ),
            None,
        ),
        ("a copy that nobody wants", with_standbys(following("e", 9), standbys=()), None),
    ],
)
def test_a_restoration_prefers_a_hot_standby(law: str, facts: GroupFacts, target: str | None) -> None:
    assert standby_target(facts) == target
    assert standby_target(facts, without={"e"}) is None
    if target is not None:
        assert restoration_strategy(facts, target, None) == "hot-standby"
    assert restoration_strategy(facts, "e", 5) == "checkpoint"


def test_a_standby_is_kept_where_the_group_could_move_and_only_if_it_can_follow() -> None:
    assert keep_standby_refusal(group(), "b") is None
    assert "runs on a" in (keep_standby_refusal(group(), "a") or "")
    assert "a standby cannot follow it" in (keep_standby_refusal(group(follow="none"), "b") or "")
    assert drop_standby_refusal(group()) == "it has no standby"
    assert drop_standby_refusal(with_standbys(following("e", 1))) is None


def test_pause_and_resume_exclude_each_other() -> None:
    for paused in (False, True):
        facts = group(paused=paused)
        assert (pause_refusal(facts) is None) != (resume_refusal(facts) is None)


def test_every_action_is_allowed_or_gives_a_reason() -> None:
    for facts in (group(), group(nodes=DOWN), group(deployment_status=None), group(handover="x")):
        for action in actions_of(facts).values():
            assert action["allowed"] is (action["reason"] is None)


@pytest.mark.parametrize(
    ("facts", "refusal"),
    [
        (group(), None),
        (group(nodes=DOWN), "does not answer"),
        (group(nodes=UNHEARD), "cannot be heard now"),
        (group(replicas=()), "does not run on its node yet"),
        (group(replicas=(ReplicaFacts("b", "owner", 1, 10),)), "does not run on its node yet"),
        (with_status(error={"message": "boom"}), "it has failed on a"),
    ],
)
def test_a_checkpoint_is_offered_only_where_one_can_be_taken(facts: GroupFacts, refusal: str | None) -> None:
    found = checkpoint_refusal(facts)
    assert found is None if refusal is None else refusal in (found or "")
