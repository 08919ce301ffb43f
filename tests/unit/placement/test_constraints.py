"""Memory, CPU, lines and what is to be apart: what each lets through, and what a refusal says."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, strategies as st

from pipeline_runtime.placement.choose import choose_target, place
from pipeline_runtime.placement.constraints import ASKED, Candidate, Ground, GroupToPlace, Room
from pipeline_runtime.placement.needs import AGENT_BYTES, ASSUMED, GroupUse, Need, NodeUse, need_of

MB = 1e6


def node(name: str, **facts: object) -> Candidate:
    plain = Candidate(
        name, up=True, ready=True, closed=None, place=name, cores=2, memory_free_bytes=1000 * MB
    )
    return replace(plain, **facts)  # type: ignore[arg-type]


def where(groups: list[GroupToPlace], nodes: list[Candidate], ground: Ground | None = None) -> dict[str, str]:
    placed, faults = place(groups, nodes, ground=ground or Ground())
    assert not faults
    return {group: found.node for group, found in placed.items()}


# -- memory -------------------------------------------------------------------------------------------


def test_a_node_without_memory_for_it_is_not_chosen_and_what_is_coming_counts() -> None:
    needs = GroupToPlace("g", 1, need=Need(0.1, 400 * MB))
    assert where([needs], [node("a", memory_free_bytes=399 * MB), node("b", elements=9)]) == {"g": "b"}
    assert where([needs], [node("a", coming=Need(0, 700 * MB)), node("b", elements=9)]) == {"g": "b"}
    assert where([needs], [node("a", memory_free_bytes=None), node("b", elements=9)]) == {"g": "a"}


def test_nodes_of_one_machine_share_its_memory() -> None:
    groups = [GroupToPlace(id, 1, need=Need(0.1, 400 * MB)) for id in ("g1", "g2", "g3")]
    placed, faults = place(groups, [node("a", machine="m"), node("b", machine="m")])
    assert placed.keys() == {"g1", "g2"}
    assert faults[0].message == (
        "no node can take it (a has 200 MB free of the 400 MB needed, b has 200 MB free of the 400 MB "
        "needed); make room on one, or pin the element to one that should take it anyway"
    )
    assert not faults[0].passing
    assert len(where(groups, [node("a", machine="m"), node("b", machine="n")])) == 3


def test_a_pin_goes_over_what_speaks_against_it_and_says_so() -> None:
    groups = [
        GroupToPlace("near", 1, pin="a"),
        GroupToPlace(
            "g", 1, pin="a", apart=frozenset({"near"}), need=replace(ASSUMED, memory_bytes=2000 * MB)
        ),
    ]
    placed, faults = place(groups, [node("a")], ground=Ground(names={"near": "Near"}))
    assert not faults
    against = (
        "runs Near, from which it must stay apart; it has 1,000 MB free of the 2,000 MB that it is assumed"
    )
    assert placed["g"].warning == f"{against} to need"
    assert placed["g"].then.startswith(
        "it was pinned there, though it ran Near, from which it must stay apart"
    )
    assert placed["near"].warning == ""


# -- CPU ----------------------------------------------------------------------------------------------


def test_several_at_once_do_not_all_go_to_the_one_idle_node() -> None:
    groups = [GroupToPlace(f"g{n}", 1, need=Need(cores=0.5)) for n in range(4)]
    nodes = [node("idle", cpu_ratio=0.0, elements=1), node("half", cpu_ratio=0.4, elements=0)]
    placed, _ = place(groups, nodes)
    on = [found.node for found in placed.values()]
    assert on == ["idle", "idle", "half", "idle"]
    assert placed["g0"].why == "the least busy: 25 % of its CPU"
    assert placed["g0"].then == "it was the least busy (25 % of its CPU) of the 2 nodes that could take it"


def test_a_small_difference_of_cpu_decides_nothing() -> None:
    nodes = [
        node("a", cpu_ratio=0.10, elements=2),
        node("b", cpu_ratio=0.19, elements=1),
        node("c", cpu_ratio=0.5),
    ]
    placed, _ = place([GroupToPlace("g", 1)], nodes)
    assert placed["g"].node == "b"
    assert placed["g"].why == "the least busy: 19 % of its CPU, with the fewest elements of 2"


def test_nodes_of_one_machine_are_as_busy_as_each_other() -> None:
    """Each reports it at another moment."""
    nodes = [node("a", cpu_ratio=0.9, machine="m"), node("b", cpu_ratio=0.2, machine="m", elements=1)]
    assert where([GroupToPlace("g", 1)], nodes) == {"g": "a"}


def test_a_busy_node_is_not_taken_while_another_is_calm() -> None:
    nodes = [node("a", cpu_ratio=0.82), node("b", cpu_ratio=0.76, elements=5)]
    placed, _ = place([GroupToPlace("g", 1)], nodes)
    assert (placed["g"].node, placed["g"].why) == ("b", "the least busy: 76 % of its CPU")


def test_all_may_be_busy() -> None:
    nodes = [node("a", cpu_ratio=0.99), node("b", cpu_ratio=0.85)]
    assert where([GroupToPlace("g", 1, need=Need(1.0))], nodes) == {"g": "b"}


# -- lines --------------------------------------------------------------------------------------------

HALLS = [
    node("hall-1", place="hall 1", elements=3),
    node("hall-2", place="hall 2", elements=3),
    node("cloud"),
]
SOURCES = [GroupToPlace("one", 1, pin="hall-1"), GroupToPlace("two", 1, pin="hall-2")]
MBIT = 1e6 / 8


def test_what_would_overfill_a_line_goes_elsewhere_and_unknown_rates_decide_nothing() -> None:
    reader = GroupToPlace("total", 1, reads=frozenset({"one", "two"}))
    flows = {("one", "total"): 1 * MBIT, ("two", "total"): 3 * MBIT}
    lines = {("hall 1", "cloud"): 9 * MBIT, ("hall 2", "cloud"): 2 * MBIT, ("hall 1", "hall 2"): None}
    assert where([*SOURCES, reader], HALLS, Ground(bytes_per_s=lines))["total"] == "cloud"
    assert where([*SOURCES, reader], HALLS, Ground(bytes_per_s=lines, flows=flows))["total"] == "hall-1"
    # What else the line carries counts, also what is placed before.
    wide = {**lines, ("hall 2", "cloud"): 5.5 * MBIT}
    crowd = GroupToPlace("crowd", 1, pin="cloud", reads=frozenset({"two"}))
    more = {**flows, ("two", "crowd"): 3 * MBIT}
    assert where([*SOURCES, reader], HALLS, Ground(bytes_per_s=wide, flows=flows))["total"] == "cloud"
    assert where([*SOURCES, crowd, reader], HALLS, Ground(bytes_per_s=wide, flows=more))["total"] == "hall-1"
    carried = Ground(bytes_per_s=wide, flows=flows, carried={("hall 2", "cloud"): 2.6 * MBIT})
    assert where([*SOURCES, reader], HALLS, carried)["total"] == "hall-1"


def test_a_refusal_says_of_each_node_which_constraint() -> None:
    groups = [
        *SOURCES,
        GroupToPlace(
            "total",
            1,
            reads=frozenset({"one", "two"}),
            apart=frozenset({"two"}),
            need=Need(0.1, 400 * MB),
        ),
    ]
    nodes = [
        replace(HALLS[0], memory_free_bytes=120 * MB),
        HALLS[1],
        HALLS[2],
        node("spare", closed="cordoned"),
    ]
    ground = Ground(
        bytes_per_s={("hall 2", "cloud"): 3.5 * MBIT},
        flows={("two", "total"): 3 * MBIT},
        carried={("hall 2", "cloud"): 2 * MBIT},
        names={"two": "Two"},
    )
    _, [fault] = place(groups, nodes, ground=ground)
    assert fault.message == (
        "no node can take it (cloud has no line for it: that from hall 2 to cloud carries 2 of 3.5 Mbit/s "
        "and it brings 3, hall-1 has 120 MB free of the 400 MB needed, hall-2 runs Two, from which it must "
        "stay apart, spare is cordoned); make room on one, or pin the element to one that should take it "
        "anyway"
    )


def test_what_leaves_a_node_frees_its_line_and_counts_those_who_read_it() -> None:
    """Its own streams are not on the line twice, and what it sends counts as what it reads."""
    runs = {"one": "hall-1", "total": "hall-1", "reader": "hall-2"}
    flows = {("one", "total"): 1 * MBIT, ("total", "reader"): 3 * MBIT}
    leaves = GroupToPlace("total", 1, reads=frozenset({"one"}), without=frozenset({"hall-1"}))
    ground = Ground(
        bytes_per_s={("hall 1", "hall 2"): 1.5 * MBIT, ("cloud", "hall 2"): 2 * MBIT}, flows=flows
    )
    assert choose_target(leaves, HALLS, runs, ground).node == "hall-2"
    assert choose_target(leaves, HALLS, runs, ground, planned="cloud").node == "hall-2"
    assert choose_target(leaves, HALLS, runs, Ground(), planned="cloud").node == "cloud"


# -- apart --------------------------------------------------------------------------------------------


def test_what_is_to_be_apart_is_and_who_has_no_choice_goes_first() -> None:
    free = GroupToPlace("free", 1, apart=frozenset({"sited"}))
    sited = GroupToPlace("sited", 1, site="a", apart=frozenset({"free"}))
    assert where([free, sited], [node("a"), node("b", elements=5)]) == {"free": "b", "sited": "a"}
    _, faults = place([free, replace(sited, site=None)], [node("a")])
    assert [fault.group for fault in faults] == ["sited"]
    assert "a runs free, from which it must stay apart" in faults[0].message


IDS = ["g0", "g1", "g2", "g3", "g4"]


@st.composite
def installations(draw: st.DrawFn) -> tuple[list[GroupToPlace], list[Candidate], Ground]:
    names = ["n0", "n1", "n2", "n3"][: draw(st.integers(1, 4))]
    nodes = [
        node(
            name,
            place=draw(st.sampled_from(["s", "t", "u"])),
            cpu_ratio=draw(st.sampled_from([0.0, 0.3, 0.7, 0.9])),
            elements=draw(st.integers(0, 3)),
            memory_free_bytes=draw(st.sampled_from([None, 100 * MB, 500 * MB, 900 * MB])),
            machine=draw(st.sampled_from(["", "m"])),
            closed=draw(st.sampled_from([None, None, None, "cordoned"])),
        )
        for name in names
    ]
    pairs = [(a, b) for n, a in enumerate(IDS) for b in IDS[n + 1 :]]
    apart = draw(st.sets(st.sampled_from(pairs), max_size=4))
    streams = draw(st.sets(st.sampled_from(pairs), max_size=5))
    groups = [
        GroupToPlace(
            id,
            1,
            reads=frozenset(a for a, b in streams if b == id),
            apart=frozenset({*(a for a, b in apart if b == id), *(b for a, b in apart if a == id)}),
            need=Need(draw(st.sampled_from([0.1, 0.5])), draw(st.sampled_from([50 * MB, 300 * MB]))),
        )
        for id in IDS
    ]
    ways = [(a, b) for a in "stu" for b in "stu" if a != b]
    ground = Ground(
        latencies={way: draw(st.sampled_from([5.0, 40.0, 90.0])) for way in ways},
        bytes_per_s={way: draw(st.sampled_from([None, 100.0, 250.0])) for way in ways},
        flows=dict.fromkeys(streams, 90.0),
    )
    return groups, nodes, ground


@given(installations())
def test_no_placement_breaks_a_constraint(case: tuple[list[GroupToPlace], list[Candidate], Ground]) -> None:
    groups, nodes, ground = case
    placed, _ = place(groups, nodes, ground=ground)
    by_name = {each.name: each for each in nodes}
    room = Room(nodes, ground, {group: found.node for group, found in placed.items()})
    for group in groups:
        if group.group in placed:
            room.put(
                replace(group, need=replace(group.need, memory_bytes=0.0)), by_name[placed[group.group].node]
            )
    taken: dict[str, float] = {}
    for group in groups:
        if group.group not in placed:
            continue
        there = by_name[placed[group.group].node]
        assert there.is_free
        assert all(asked(replace(group, need=Need()), there, room) is None for asked in ASKED)
        machine = there.machine or there.name
        taken[machine] = taken.get(machine, 0.0) + group.need.memory_bytes
    for each in nodes:
        machine = each.machine or each.name
        if each.memory_free_bytes is not None:
            assert taken.get(machine, 0.0) <= each.memory_free_bytes


@given(installations(), st.permutations(["n0", "n1", "n2", "n3"]))
def test_other_names_of_nodes_change_nothing_but_ties(
    case: tuple[list[GroupToPlace], list[Candidate], Ground], names: list[str]
) -> None:
    groups, nodes, ground = case
    # No two of them are alike: one more element each, and no machine in common.
    nodes = [replace(each, elements=each.elements + 10 * n, machine="") for n, each in enumerate(nodes)]
    called = dict(zip(["n0", "n1", "n2", "n3"], names, strict=True))
    # In another order, too.
    other = sorted((replace(each, name=called[each.name]) for each in nodes), key=lambda each: each.name)
    first, faults = place(groups, nodes, ground=ground)
    second, others = place(groups, other, ground=ground)
    assert {group: called[found.node] for group, found in first.items()} == {
        group: found.node for group, found in second.items()
    }
    assert [fault.group for fault in faults] == [fault.group for fault in others]


# -- needs --------------------------------------------------------------------------------------------


def test_a_need_is_that_of_groups_of_its_kind_else_assumed() -> None:
    nodes = {"a": NodeUse(4, 0.5, AGENT_BYTES + 900 * MB), "b": NodeUse(2, 0.1, AGENT_BYTES)}
    groups = [
        GroupUse(("map",), "a", 300.0),
        GroupUse(("sum",), "a", 100.0),
        GroupUse(("map",), "a", 0.0, owns=False),
        GroupUse(("rest",), "b", 0.0),
    ]
    assert need_of(("map",), groups, nodes) == Need(cores=1.5, memory_bytes=300 * MB)
    assert need_of(("sum",), groups, nodes) == Need(cores=0.5, memory_bytes=300 * MB)
    # One alone is taken to be all that its node does.
    assert need_of(("rest",), groups, nodes) == Need(cores=0.2, memory_bytes=ASSUMED.memory_bytes)
    assert need_of(("other",), groups, nodes) == ASSUMED
