"""An element follows its user: whom, where to, when not; that nothing moves to and fro."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings, strategies as st

from pipeline_runtime.placement.policy.evaluate import evaluate
from pipeline_runtime.placement.policy.facts import GroupNow, Move, NodeNow, Sample, UserAt, Verdict
from pipeline_runtime.placement.policy.look import REST_S
from pipeline_runtime.placement.policy.rules import Apart, FollowUser, Pack, Policy, Spread

NOW_S = 10_000.0
RULE = FollowUser(kind="follow", pipeline="p", element="phone", along=False, for_s=60)
NEAR = Policy("near", RULE, moves_per_hour=6)
WITH_ALL = replace(NEAR, rule=RULE.model_copy(update={"along": True}))
LINKS = {
    ("hall 1", "hall 2"): 8.0,
    ("hall 1", "cloud"): 40.0,
    ("hall 2", "hall 1"): 8.0,
    ("hall 2", "cloud"): 45.0,
}


def node(name: str, site: str, cpu: float = 0.3) -> NodeNow:
    return NodeNow(name, [Sample(NOW_S - 30 * back, cpu) for back in (2, 1, 0)], site=site)


def group(id: str, at: str, *reads: str, pinned: bool = False) -> GroupNow:
    return GroupNow(id, id, at, 10, pipeline="p", elements=(id,), inputs=reads, pinned=pinned)


A, B, CLOUD = node("a", "hall 1"), node("b", "hall 2"), node("c", "cloud")
NODES = (A, B, CLOUD)


def phone(at: str, site: str = "hall 1", since_s: float = NOW_S - 100) -> GroupNow:
    return replace(group("phone", at), users=(UserAt("phone", site, since_s),))


def look(
    *groups: GroupNow,
    policy: Policy = NEAR,
    nodes: tuple[NodeNow, ...] = NODES,
    moves: tuple[Move, ...] = (),
    links: dict[tuple[str, str], float] = LINKS,
) -> list[Verdict]:
    return evaluate([policy], nodes, groups, moves, NOW_S, links=links)


def said(found: list[Verdict]) -> list[tuple[str | None, str, str | None]]:
    return [(each.group, each.code, each.target) for each in found]


def test_it_goes_to_the_nearest_node_when_its_user_has_stayed() -> None:
    [verdict] = look(phone("c"), replace(group("other", "c"), pipeline="q"))
    assert (verdict.code, verdict.node, verdict.target) == ("move", "c", "a")
    assert verdict.why == (
        "The user of phone has been at hall 1; a is 0.0 ms away from there, it is 40.0 ms away now;"
        " a would reach 45 % of its CPU."
    )
    [verdict] = look(phone("c", since_s=NOW_S - 30))
    assert (verdict.code, verdict.why) == (
        "not-yet",
        "The user of phone has been at hall 1 for 30 s of 60 s.",
    )


def test_nodes_within_10_ms_are_alike() -> None:
    """The least busy of those is taken; and what is on one of them stays."""
    busy = replace(A, samples=node("a", "", 0.6).samples)
    assert said(look(phone("c"), nodes=(busy, B, CLOUD))) == [("phone", "move", "b")]
    [verdict] = look(phone("b"))
    assert (verdict.code, verdict.why) == (
        "calm",
        "phone on b is 8.0 ms away from its user at hall 1, and no node is nearer by more than 10 ms.",
    )
    assert said(look(phone("b"), links={("hall 1", "hall 2"): 10.1})) == [("phone", "move", "a")]


def test_what_is_not_known() -> None:
    assert said(look(group("phone", "c"))) == [("phone", "unknown", None)]  # nobody told
    assert said(look(phone("c", "hall 9"))) == [("phone", "unknown", None)]  # no way is known
    assert said(look(phone("b", "hall 9"), links={("hall 9", "hall 1"): 30.0})) == [("phone", "move", "a")]
    assert said(look(phone("c"), nodes=(A, B, replace(CLOUD, samples=())))) == [("phone", "unknown", None)]
    assert look(group("other", "c")) == []  # its pipeline does not run
    # An element in a group with others is followed too.
    both = replace(phone("c"), elements=("filter", "phone"))
    assert said(look(both)) == [("phone", "move", "a")]
    assert said(look(replace(both, users=(UserAt("filter", "hall 1", 0),)))) == [("phone", "unknown", None)]


def test_what_cannot_take_it() -> None:
    far = node("b", "hall 2", 0.9)
    [verdict] = look(phone("c"), nodes=(replace(A, refusal="is cordoned"), far, CLOUD))
    assert verdict.code == "no-target"
    assert verdict.why == (
        "No node that is nearer to hall 1 can take phone: a is cordoned, b would reach 120 % of its CPU,"
        " more than 80 %."
    )
    assert said(look(phone("c"), nodes=(replace(A, refusal="is cordoned"), B, CLOUD))) == [
        ("phone", "move", "b")  # the next one
    ]
    spent = tuple(Move(f"{i}", "x", "y", NOW_S - 900, NOW_S - 800, True, "near") for i in range(6))
    assert said(look(phone("c"), moves=spent)) == [("phone", "budget", "a")]


def test_on_the_machine_where_it_runs_it_takes_no_more_than_it_does() -> None:
    a, c = (replace(each, samples=node("", "", 0.7).samples) for each in (A, CLOUD))
    [verdict] = look(phone("c"), nodes=(a, c))
    assert verdict.code == "no-target"
    assert "140 % of its CPU" in verdict.why
    a, c = (replace(each, machine="one") for each in (a, c))
    [verdict] = look(phone("c"), nodes=(a, c))
    assert (verdict.code, verdict.target) == ("move", "a")
    assert "would reach 70 % of its CPU" in verdict.why


def test_a_user_who_goes_on_is_followed_on() -> None:
    """After a move of its own it rests for as long as the user has to stay; after another one as always."""
    own = Move("phone", "a", "c", NOW_S - 110, NOW_S - 100, True, "near")
    assert said(look(phone("c"), moves=(own,))) == [("phone", "move", "a")]
    just = replace(own, ended_s=NOW_S - 50)
    # What took part in a move takes nothing for a minute; so the next one.
    assert said(look(phone("c"), moves=(just,))) == [("phone", "resting", None)]
    by_hand = replace(own, policy=None)
    assert said(look(phone("c"), moves=(by_hand,))) == [("phone", "resting", None)]
    assert said(look(phone("c"), moves=(replace(by_hand, ended_s=NOW_S - REST_S),))) == [
        ("phone", "move", "a")
    ]


def test_what_reads_only_from_it_goes_along() -> None:
    chain = (
        phone("c"),
        group("clean", "c", "phone"),
        group("mean", "c", "clean", "phone"),
        group("fixed", "c", "clean", pinned=True),
        group("behind", "c", "fixed"),
        group("merged", "c", "clean", "elsewhere"),
        group("elsewhere", "c"),
    )
    assert said(look(*chain)) == [("phone", "move", "a")]
    # One after another leaves a node.
    assert said(look(*chain, policy=WITH_ALL)) == [
        ("phone", "move", "a"),
        ("clean", "moving", None),
        ("mean", "moving", None),
    ]
    arrived = (replace(chain[0], node="a"), *chain[1:])
    assert said(look(*arrived, policy=WITH_ALL)) == [
        ("phone", "calm", None),
        ("clean", "move", "a"),
        ("mean", "moving", None),
    ]


def test_what_balances_leaves_it_alone() -> None:
    """Else one would move it back to where the other has taken it from."""
    for rule in (
        Spread(kind="spread", difference=0.3, for_s=60),
        Apart(kind="apart", pipeline="p", most=1),
        Pack(kind="pack", threshold=0.8, for_s=60),
    ):
        nodes = (node("a", "hall 1", 0.7), node("b", "hall 2", 0.1), node("c", "cloud", 0.2))
        at = "b" if rule.kind == "pack" else "a"
        groups = (phone(at), group("other", at, "phone"), replace(group("x", "c"), pipeline="q"))
        found = evaluate([NEAR, Policy("even", rule)], nodes, groups, (), NOW_S, links=LINKS)
        moved = {each.group for each in found if each.policy == "even" and each.code == "move"}
        assert moved == (set() if rule.kind == "pack" else {"other"})
        [calm] = [each for each in found if each.policy == "near"]
        assert calm.code == "calm"
        if rule.kind == "pack":
            assert "phone cannot move: it follows its user, by near" in " ".join(e.why for e in found)


@settings(max_examples=30, deadline=None)
@given(
    ways=st.lists(st.floats(0.0, 60.0), min_size=12, max_size=12),
    noise=st.lists(st.floats(-4.9, 4.9), min_size=20, max_size=20),
    cpu=st.lists(st.floats(0.0, 0.6), min_size=4, max_size=4),
    walk=st.lists(st.integers(0, 2), min_size=1, max_size=4),
)
def test_where_its_user_stays_it_comes_to_rest(
    ways: list[float], noise: list[float], cpu: list[float], walk: list[int]
) -> None:
    """The user goes from site to site each half an hour, then stays for two hours; each latency varies by
    less than 5 ms. In the last hour nothing moves."""
    names, sites = [f"n{i}" for i in range(4)], ["s0", "s1", "s2"]
    policy = replace(WITH_ALL, moves_per_hour=100)
    at = {"phone": "n0", "clean": "n3"}
    moves: list[Move] = []
    ends_s = 1800.0 * len(walk) + 7200
    for step in range(int(ends_s / 30)):
        now_s = 30.0 * step
        stage = min(int(now_s / 1800), len(walk) - 1)
        turn = next(i for i in range(stage, -1, -1) if i == 0 or walk[i] != walk[i - 1])
        links = {
            (site, name): max(0.0, ways[4 * i + j] + noise[(step + i + j) % 20])
            for i, site in enumerate(sites)
            for j, name in enumerate(names)
        }
        nodes = [NodeNow(n, [Sample(now_s, cpu[i])], site=n) for i, n in enumerate(names)]
        user = UserAt("phone", sites[walk[stage]], 1800.0 * turn)
        groups = [
            replace(group("phone", at["phone"]), users=(user,)),
            group("clean", at["clean"], "phone"),
        ]
        for verdict in evaluate([policy], nodes, groups, moves, now_s, links=links):
            if verdict.code == "move":
                id, target = str(verdict.group), str(verdict.target)
                moves.append(Move(id, at[id], target, now_s, now_s, True, policy.name))
                at[id] = target
    assert all(move.at_s <= ends_s - 3600 for move in moves)
