from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from pipeline_runtime.placement.backup import (
    BackupCandidate,
    BackupLimits,
    GroupToBackUp,
    choose_backups,
)

GB = 1_000_000_000
LIMITS = BackupLimits(cpu_ratio_max=0.9, disk_free_bytes_min=GB, bytes_per_s_max=1000)
A = BackupCandidate("a", up=True, site="north", disk_free_bytes=100 * GB)
B = replace(A, name="b")
SOUTH = replace(A, name="south", site="south", cpu_ratio=0.8)
GROUP = GroupToBackUp("g", owner="a", bytes_total=GB, bytes_per_s=100)


def chosen(*nodes: BackupCandidate, group: GroupToBackUp = GROUP) -> str | None:
    return choose_backups([group], nodes, LIMITS)["g"]


def test_never_the_owners_own_node() -> None:
    assert chosen(A) is None
    assert chosen(A, B) == "b"


def test_another_site_if_there_is_one_even_a_busier_one() -> None:
    assert chosen(A, B, SOUTH) == "south"
    assert chosen(A, replace(B, site=None), B) == "b", "a node without a site counts as elsewhere"


def test_no_node_that_is_away_cordoned_loaded_or_full() -> None:
    for unfit in (
        replace(SOUTH, up=False),
        replace(SOUTH, cordoned=True),
        replace(SOUTH, cpu_ratio=0.91),
        replace(SOUTH, disk_free_bytes=2 * GB - 1),
    ):
        assert chosen(A, B, unfit) == "b"
        assert chosen(A, unfit) is None


def test_the_one_that_receives_least_then_the_one_that_computes_least() -> None:
    groups = [GroupToBackUp(f"g{n}", "a", 0, bytes_per_s=300 - n) for n in range(3)]
    busy, idle = replace(B, name="busy", cpu_ratio=0.5), replace(B, name="idle", cpu_ratio=0.1)
    found = choose_backups(groups, [A, busy, idle], LIMITS)
    assert found == {"g0": "idle", "g1": "busy", "g2": "busy"}, "300 there, 299 here: 298 more here"


def test_a_node_receives_no_more_than_its_bandwidth() -> None:
    groups = [GroupToBackUp(f"g{n}", "a", 0, bytes_per_s=600) for n in range(3)]
    found = choose_backups(groups, [A, B, SOUTH], LIMITS)
    assert sorted(filter(None, found.values())) == ["b", "south"]
    assert list(found.values()).count(None) == 1


def test_a_backup_stays_where_it_is_though_another_were_better_by_now() -> None:
    held = replace(GROUP, current="b")
    assert chosen(A, B, replace(B, name="aa", cpu_ratio=0.0), group=held) == "b"
    assert chosen(A, replace(B, cpu_ratio=1.0, cordoned=True), group=held) == "b"


def test_a_backup_moves_when_it_is_of_no_use_where_it_is() -> None:
    held = replace(GROUP, current="b")
    assert chosen(A, replace(B, up=False), SOUTH, group=held) == "south"
    assert chosen(A, replace(B, disk_free_bytes=GB - 1), SOUTH, group=held) == "south"
    assert chosen(A, B, SOUTH, group=held) == "south", "the owner's site, and there is another"
    assert chosen(A, B, group=replace(GROUP, owner="b", current="b")) == "a", "the owner moved there"
    assert chosen(A, B, group=replace(GROUP, current="gone")) == "b"


NODES = st.lists(
    st.builds(
        BackupCandidate,
        name=st.sampled_from("abcdef"),
        up=st.booleans(),
        cordoned=st.booleans(),
        site=st.sampled_from([None, "x", "y"]),
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
        current=st.none() | st.sampled_from("abcdef"),
    ),
    unique_by=lambda group: group.group,
)


@given(groups=GROUPS, nodes=NODES)
def test_chosen_again_with_what_was_chosen_nothing_moves(
    groups: list[GroupToBackUp], nodes: list[BackupCandidate]
) -> None:
    first = choose_backups(groups, nodes, LIMITS)
    by_name = {node.name: node for node in nodes}
    for group in groups:
        name = first[group.group]
        assert name != group.owner
        assert name is None or by_name[name].up
    held = [replace(group, current=first[group.group]) for group in groups if first[group.group]]
    again = choose_backups(held, nodes, LIMITS)
    assert again == {group.group: first[group.group] for group in held}
    assert choose_backups(list(reversed(groups)), list(reversed(nodes)), LIMITS) == first
