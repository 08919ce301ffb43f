"""Tests the rules for plans of backups: where backups lie, where groups continue, and which backups stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.backup import Backup, BackupLimits, BackupNode, GroupToBackUp, plan_backups
from tests.chosen import examples

GB = 1_000_000_000
LIMITS = BackupLimits(cpu_ratio_max=0.9, disk_free_bytes_min=GB, bytes_per_s_max=1000)
A = BackupNode("a", up=True, site="north", cores=4, disk_free_bytes=100 * GB)
B = replace(A, name="b")
SOUTH = replace(A, name="south", site="south", cpu_ratio=0.8)
GROUP = GroupToBackUp("g", owner="a", bytes_total=GB, bytes_per_s=100, cpu=0.1)


def planned(*nodes: BackupNode, group: GroupToBackUp = GROUP) -> Backup:
    return plan_backups([group], nodes, LIMITS)["g"]


def stored(*nodes: BackupNode, group: GroupToBackUp = GROUP) -> str | None:
    return planned(*nodes, group=group).store


# --- where it goes on


def test_it_does_not_go_on_beside_what_it_is_to_be_apart_from() -> None:
    apart = replace(GROUP, apart_from=frozenset({"b"}))
    assert planned(A, B, replace(B, name="c"), group=apart).redeploy == "c"
    assert planned(A, B, group=apart) == Backup("b", None), "its backup may lie there"


# --- where a backup lies


def test_never_the_owners_own_node() -> None:
    assert planned(A) == Backup(None, None)
    assert planned(A, B) == Backup("b", "b"), "it goes on where its backup lies"


def test_another_site_if_there_is_one_even_a_busier_one() -> None:
    assert stored(A, B, SOUTH) == "south"
    assert stored(A, replace(B, site=None), B) == "b", "a node without a site counts as elsewhere"


@pytest.mark.parametrize(
    "unfit",
    [
        replace(SOUTH, up=False),
        replace(SOUTH, cordoned=True),
        replace(SOUTH, cpu_ratio=0.91),
        replace(SOUTH, disk_free_bytes=2 * GB - 100),
    ],
    ids=["away", "cordoned", "loaded", "full"],
)
def test_no_node_that_may_not_take_it(unfit: BackupNode) -> None:
    assert stored(A, B, unfit) == "b"
    assert stored(A, unfit) is None


def test_a_node_sends_and_receives_no_more_than_its_bandwidth() -> None:
    owners = [replace(A, name=name, site=None) for name in ("w1", "w2", "w3")]
    groups = [GroupToBackUp(f"g{n}", f"w{n}", 0, bytes_per_s=600) for n in (1, 2, 3)]
    held = [replace(A, name="x", site=None), *(replace(owner, cordoned=True) for owner in owners)]
    found = plan_backups(groups, held, LIMITS)
    assert sorted(str(backup.store) for backup in found.values()) == ["None", "None", "x"]


def test_disks_are_filled_by_all_that_comes_and_not_by_what_is_there() -> None:
    small = replace(B, disk_free_bytes=3 * GB)
    groups = [GroupToBackUp(f"g{n}", "a", 2 * GB) for n in (1, 2)]
    assert [each.store for each in plan_backups(groups, [A, small], LIMITS).values()] == ["b", None]
    there = [replace(groups[0], current="b"), groups[1]]
    assert [each.store for each in plan_backups(there, [A, small], LIMITS).values()] == ["b", "b"]


def test_a_backup_stays_where_it_is_though_another_were_better_by_now() -> None:
    held = replace(GROUP, current="b")
    assert stored(A, B, replace(B, name="aa", cpu_ratio=0.0), group=held) == "b"
    assert stored(A, replace(B, cpu_ratio=1.0, cordoned=True), group=held) == "b"


@pytest.mark.parametrize("cores", [0, 4], ids=["unknown CPU", "known CPU"])
@pytest.mark.parametrize(("old", "new"), [("g1", "g2"), ("g2", "g1")])
def test_what_lies_there_counts_before_what_is_new(old: str, new: str, cores: int) -> None:
    nodes = [replace(A, name=name, site=None, cores=cores) for name in ("a", "b", "c")]
    light = GroupToBackUp(new, "a", bytes_total=0, cpu=0.1)
    groups = [replace(light, group=old, current="b"), light]
    found = plan_backups(groups, nodes, LIMITS)
    assert (found[old].store, found[new].store) == ("b", "c")


def test_a_backup_moves_when_it_is_of_no_use_where_it_is() -> None:
    held = replace(GROUP, current="b")
    assert stored(A, replace(B, up=False), SOUTH, group=held) == "south"
    assert stored(A, replace(B, disk_free_bytes=GB - 1), SOUTH, group=held) == "south"
    assert stored(A, B, SOUTH, group=held) == "south", "the owner's site, and there is another"
    assert stored(A, B, group=replace(GROUP, owner="b", current="b")) == "a", "the owner moved there"
    assert stored(A, B, group=replace(GROUP, current="gone")) == "b"


# --- where the group goes on


def test_where_cpu_is_left_though_its_backup_has_to_be_fetched() -> None:
    busy = replace(SOUTH, cpu_ratio=0.89)
    assert planned(A, B, busy, group=replace(GROUP, cpu=1.0)) == Backup("south", "b")


def test_of_what_shares_a_node_not_all_goes_to_one_that_has_no_cpu_for_all() -> None:
    groups = [replace(GROUP, group=f"g{n}", cpu=1.0) for n in range(4)]
    nodes = [A, replace(B, site="x", cpu_ratio=0.4), replace(B, name="c", site="y", cpu_ratio=0.4)]
    found = plan_backups(groups, nodes, LIMITS)
    assert sorted(str(each.redeploy) for each in found.values()) == ["b", "b", "c", "c"]


def test_where_no_node_has_the_cpu_there_is_a_backup_all_the_same() -> None:
    assert planned(A, B, group=replace(GROUP, cpu=50.0)) == Backup("b", None)
    assert planned(A, B, group=replace(GROUP, cpu=50.0, current="b", redeploy="b")) == Backup("b", None)


def test_when_the_node_to_go_on_gets_busy_the_backup_stays() -> None:
    held = replace(GROUP, cpu=1.0, current="b", redeploy="b")
    south = replace(SOUTH, cpu_ratio=0.1)
    busy = replace(B, site=None, cpu_ratio=0.8)
    assert planned(A, busy, south, group=held) == Backup("b", "south")


def test_a_cordoned_node_keeps_a_backup_and_takes_no_group() -> None:
    held = replace(GROUP, current="b", redeploy="b")
    assert planned(A, replace(B, site=None, cordoned=True), SOUTH, group=held) == Backup("b", "south")


def test_while_its_node_is_away_a_group_keeps_its_places() -> None:
    held = replace(GROUP, current="b", redeploy="south")
    assert planned(replace(A, up=False), B, replace(SOUTH, cpu_ratio=1.0), group=held) == Backup("b", "south")
    assert planned(replace(A, up=False), B, group=held) == Backup("b", None), "a node is gone"


def test_between_sites_no_more_is_sent_than_the_link_carries() -> None:
    def found(width: float) -> Mapping[str, Backup]:
        links = {frozenset(("north", "south")): width}
        return plan_backups([GROUP], [A, B, SOUTH], LIMITS, links)

    assert found(100.0)["g"].store == "south"
    assert found(99.0)["g"].store == "b"


def test_a_line_that_is_short_of_room_takes_no_backup_away() -> None:
    held, slow = replace(GROUP, current="south", redeploy="south"), {frozenset(("north", "south")): 1.0}
    assert plan_backups([held], [A, SOUTH], LIMITS, slow)["g"] == Backup("south", None)
    assert plan_backups([replace(held, current=None)], [A, SOUTH], LIMITS, slow)["g"] == Backup()
    full = replace(SOUTH, disk_free_bytes=0)
    assert plan_backups([held], [A, full], LIMITS, slow)["g"] == Backup()


NODES = st.lists(
    st.builds(
        BackupNode,
        name=st.sampled_from("abcdef"),
        up=st.booleans(),
        cordoned=st.booleans(),
        site=st.sampled_from([None, "x", "y"]),
        cores=st.sampled_from([1.0, 4.0]),
        cpu_ratio=st.floats(0, 1),
        disk_free_bytes=st.integers(0, 10 * GB),
    ),
    unique_by=lambda node: node.name,
)
GROUPS = st.lists(
    st.builds(
        GroupToBackUp,
        group=st.text("ghij", min_size=1, max_size=3),
        owner=st.sampled_from("abcdef"),
        bytes_total=st.integers(0, 3 * GB),
        bytes_per_s=st.floats(0, 900),
        cpu=st.floats(0, 2),
        current=st.none() | st.sampled_from("abcdef"),
        redeploy=st.none() | st.sampled_from("abcdef"),
    ),
    unique_by=lambda group: group.group,
    max_size=8,
)


@settings(max_examples=examples(60))
@given(groups=GROUPS, nodes=NODES)
def test_planned_again_with_what_was_planned_no_backup_moves(
    groups: list[GroupToBackUp], nodes: list[BackupNode]
) -> None:
    first = plan_backups(groups, nodes, LIMITS)
    by_name = {node.name: node for node in nodes}
    for group in groups:
        if group.owner in by_name and by_name[group.owner].up:
            places = first[group.group]
            assert group.owner not in (places.store, places.redeploy)
            assert all(by_name[name].up for name in (places.store, places.redeploy) if name is not None)
    held = [
        replace(group, current=first[group.group].store, redeploy=first[group.group].redeploy)
        for group in groups
    ]
    again = plan_backups(held, nodes, LIMITS)
    for name, places in first.items():
        if places.store is not None:
            assert again[name].store == places.store
    assert plan_backups(list(reversed(groups)), list(reversed(nodes)), LIMITS) == first
