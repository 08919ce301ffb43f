"""Sites that come and go: what becomes of the copies there."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import Copied, CopyChange, GroupNow, Move, NodeNow, Sample
from pipeline_runtime.placement.policy.look import REST_S
from pipeline_runtime.placement.policy.rules import Maintenance, Policy, Sites
from tests.chosen import examples

NOW_S = 10_000.0
RULE = Sites(kind="sites", pipeline="", for_s=60, gone="take-out", gone_s=300)
POLICY = Policy("plants", RULE, moves_per_hour=6)
FLOW = Copied("flow", {"hall": ("d.part",)}, frozenset({"hall"}), frozenset({"yard"}))
BOTH = Copied("flow", {"hall": ("d.part",), "yard": ("d.part-yard",)})

Said = list[tuple[str | None, str, str | None, str | None]]


def node(name: str, site: str, for_s: float = 90, silent_s: float = 0) -> NodeNow:
    """Heard for so long in one go; `silent_s`: it is down, and was heard so long ago."""
    samples = [Sample(NOW_S - silent_s - back, 0.1) for back in range(int(for_s), -1, -30)]
    refusal = "does not answer" if silent_s else None
    seen_s = NOW_S - silent_s
    return NodeNow(name, samples, refusal=refusal, site=site, up=not silent_s, seen_s=seen_s)


HALL, YARD = node("edge-a", "hall", 3000), node("edge-b", "yard")
GONE = node("edge-b", "yard", silent_s=301)
ON_GONE = GroupNow("d.part-yard", "part of flow", "edge-b", 1.0)
PART = GroupNow("d.part", "part of flow", "edge-a", 1.0)


def said(
    nodes: list[NodeNow],
    copied: Copied,
    policy: Policy = POLICY,
    groups: tuple[GroupNow, ...] = (PART, ON_GONE),
    changes: tuple[CopyChange, ...] = (),
    moves: tuple[Move, ...] = (),
) -> Said:
    found = evaluate([policy], nodes, groups, moves, NOW_S, copied=[copied], changes=changes)
    return [(each.site, each.code, each.group, each.target) for each in found if each.code != "calm"]


def why(nodes: list[NodeNow], copied: Copied, policy: Policy = POLICY) -> str:
    found = evaluate([policy], nodes, [PART, ON_GONE], [], NOW_S, copied=[copied])
    [only] = [each.why for each in found if each.code != "calm"]
    return only


def test_a_site_that_appears_gets_its_copy() -> None:
    assert said([HALL, YARD], FLOW) == [("yard", "copy", None, None)]
    assert why([HALL, YARD], FLOW) == "yard is there, and flow has no copy there yet."
    assert said([HALL], replace(FLOW, lacks=frozenset())) == []
    assert said([HALL, YARD], BOTH) == [], "it has it"


@pytest.mark.parametrize(
    ("nodes", "code"),
    [
        ([node("edge-b", "yard", 30)], "not-yet"),
        ([node("edge-b", "yard", 30), node("edge-c", "yard")], "copy"),  # one is enough
        ([replace(YARD, refusal="is cordoned")], None),
        ([replace(YARD, samples=())], None),
        ([GONE], None),
    ],
)
def test_one_that_appears_has_to_be_there_for_a_while_and_take_elements(
    nodes: list[NodeNow], code: str | None
) -> None:
    assert [each[1] for each in said([HALL, *nodes], FLOW)] == ([code] if code else [])


def test_nothing_is_copied_to_a_node_in_maintenance() -> None:
    rule = Maintenance.model_validate(
        {
            "kind": "maintenance",
            "of": "site",
            "name": "yard",
            "begins": "2026-11-25T00:00:00Z",
            "minutes": 60,
            "weekly": False,
            "lead_minutes": 0,
        }
    )
    at_s = rule.begins.timestamp() + 60
    moved = [
        replace(each, samples=[Sample(at_s - back, 0.1) for back in (90, 60, 30, 0)]) for each in (HALL, YARD)
    ]
    found = evaluate([POLICY, Policy("night", rule)], moved, [PART], [], at_s, copied=[FLOW])
    assert "copy" not in [each.code for each in found]


@pytest.mark.parametrize(
    ("gone", "expected"),
    [
        ("wait", ("yard", "waits", None, None)),
        ("take-out", ("yard", "take-out", None, None)),
        ("elsewhere", ("yard", "restore", "d.part-yard", "edge-a")),
    ],
)
def test_of_one_that_goes_the_copies_do_as_is_set(gone: str, expected: tuple[str | None, ...]) -> None:
    policy = replace(POLICY, rule=RULE.model_copy(update={"gone": gone}))
    groups = (PART, replace(ON_GONE, refuge="edge-a"))
    assert said([HALL, GONE], BOTH, policy, groups) == [expected]
    early = node("edge-b", "yard", silent_s=299)
    assert said([HALL, early], BOTH, policy, groups) == [("yard", "not-yet", None, None)]
    # As long as one of its nodes answers it has not gone.
    assert said([HALL, GONE, node("edge-c", "yard")], BOTH, policy, groups) == []


def test_what_cannot_be_taken_out_waits() -> None:
    last = Copied("flow", {"yard": ("d.part-yard",)}, only=frozenset({"yard"}))
    assert "the only copies" in why([HALL, GONE], last)
    assert said([HALL, GONE], last) == [("yard", "waits", None, None)]
    # What was moved away runs: it is left alone.
    assert said([HALL, GONE], BOTH, groups=(PART, replace(ON_GONE, node="edge-a"))) == []
    # A site that nobody says any more may have got another name.
    assert said([HALL], BOTH) == [("yard", "refused", None, None)]


def test_what_goes_on_elsewhere_needs_a_node_and_is_not_tried_without_end() -> None:
    policy = replace(POLICY, rule=RULE.model_copy(update={"gone": "elsewhere"}))
    assert said([HALL, GONE], BOTH, policy) == [("yard", "no-target", "d.part-yard", None)]
    groups = (PART, replace(ON_GONE, refuge="edge-a"))
    going = Move("d.part-yard", "edge-b", "edge-a", NOW_S - 20)
    assert said([HALL, GONE], BOTH, policy, groups, moves=(going,))[0][1] == "moving"
    failed = replace(going, ended_s=NOW_S - 10)
    assert said([HALL, GONE], BOTH, policy, groups, moves=(failed,))[0][1] == "resting"


@pytest.mark.parametrize(
    ("copied", "code"),
    [
        (replace(FLOW, refusal="its draft is another one than what runs"), "refused"),
        (replace(FLOW, changing=True), "moving"),
    ],
)
def test_what_is_in_the_way_of_an_upgrade_is_said(copied: Copied, code: str) -> None:
    assert said([HALL, YARD], copied) == [("yard", code, None, None)]


def test_what_was_changed_rests_and_upgrades_count_as_moves() -> None:
    lately = CopyChange("flow", "yard", "", NOW_S - REST_S + 1)
    assert said([HALL, YARD], FLOW, changes=(lately,))[0][1] == "resting"
    assert said([HALL, YARD], FLOW, changes=(replace(lately, at_s=NOW_S - REST_S),))[0][1] == "copy"
    assert said([HALL, YARD], FLOW, changes=(replace(lately, site="hall"),))[0][1] == "copy"
    spent = tuple(CopyChange("other", "yard", "plants", NOW_S - 700 - n) for n in range(6))
    assert said([HALL, YARD], FLOW, changes=spent)[0][1] == "budget"


def test_two_sites_of_a_pipeline_come_one_after_the_other() -> None:
    copied = replace(FLOW, lacks=frozenset({"yard", "barn"}))
    found = said([HALL, YARD, node("edge-c", "barn")], copied)
    assert found == [("barn", "copy", None, None), ("yard", "moving", None, None)]


def test_it_is_about_one_pipeline_where_it_says_so() -> None:
    policy = replace(POLICY, rule=RULE.model_copy(update={"pipeline": "other"}))
    assert said([HALL, YARD], FLOW, policy) == []


@settings(max_examples=examples(60), deadline=None)
@given(st.lists(st.integers(1, 30), min_size=2, max_size=40))
def test_a_site_that_comes_and_goes_takes_its_copies_along_only_now_and_then(turns: list[int]) -> None:
    """`turns`: for how many half minutes it is there, is gone, is there, …"""
    policy = replace(POLICY, rule=RULE.model_copy(update={"gone_s": 60}))
    is_up = [index % 2 == 0 for index, turn in enumerate(turns) for _ in range(turn)]
    samples: list[Sample] = []
    changes: list[CopyChange] = []
    has, seen_s = False, 0.0
    for step, up in enumerate(is_up):
        now_s = 30.0 * step
        hall = replace(HALL, samples=[Sample(now_s, 0.1)], seen_s=now_s)
        if up:
            samples.append(Sample(now_s, 0.1))
            seen_s = now_s
        refusal = None if up else "does not answer"
        yard = replace(YARD, samples=tuple(samples), up=up, seen_s=seen_s, refusal=refusal)
        found = evaluate(
            [policy],
            [hall, yard],
            [PART, ON_GONE],
            [],
            now_s,
            copied=[BOTH if has else FLOW],
            changes=changes,
        )
        for each in found:
            if each.code in ("copy", "take-out"):
                assert (each.code == "copy") != has
                has = not has
                changes.append(CopyChange("flow", "yard", "plants", now_s))
    assert all(b.at_s - a.at_s >= REST_S for a, b in pairwise(changes))
    times = [each.at_s for each in changes]
    assert all(sum(1 for at in times if from_s <= at < from_s + 3600) <= 6 for from_s in times)
