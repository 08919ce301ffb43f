"""The oracle for SpanEdge's rule, on the example that comes with SpanEdge's scheduler."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

from tests.oracles.spanedge import GeoGroup, Latencies, Sited, read_latencies, read_sources, site_groups

SHIPPED = Path(__file__).parent / "spanedge"
EDGES = [f"CloudEdge{letter}" for letter in "ABCDEFGHI"]


@pytest.fixture(scope="module")
def shipped() -> Latencies:
    return read_latencies((SHIPPED / "latencies.txt").read_text())


def groups_of_shipped() -> list[GeoGroup]:
    sources = read_sources((SHIPPED / "sources.txt").read_text())
    local = [GeoGroup(source, frozenset(sites)) for source, sites in sources.items()]
    return [*local, GeoGroup("global", reads=frozenset(sources))]


def test_the_shipped_example_has_the_greatest_latencies_of_the_original(shipped: Latencies) -> None:
    found = {site.removeprefix("Cloud"): shipped.greatest(EDGES, site) for site in shipped.sites}
    assert found == {
        "GlobalA": 30,
        **dict.fromkeys(("EdgeA", "EdgeC", "EdgeD", "EdgeE", "EdgeF"), 40),
        "EdgeI": 45,
        **dict.fromkeys(("EdgeB", "EdgeG", "EdgeH"), 50),
    }


def test_the_shipped_example_is_placed_as_the_original_places_it(shipped: Latencies) -> None:
    placed = site_groups(groups_of_shipped(), shipped)
    assert placed["global"].sites == ("CloudGlobalA",)
    assert (placed["global"].local, placed["global"].latency_ms) == (False, 30)
    assert {site for id, each in placed.items() if each.local for site in each.sites} == set(EDGES)


@given(st.randoms(use_true_random=False))
def test_neither_the_order_of_groups_nor_that_of_sites_changes_a_place(random: Random) -> None:
    latencies = read_latencies((SHIPPED / "latencies.txt").read_text())
    expected = site_groups(groups_of_shipped(), latencies)
    order = random.sample(range(len(latencies.sites)), len(latencies.sites))
    shuffled = Latencies(
        tuple(latencies.sites[at] for at in order),
        tuple(tuple(latencies.rows[d][c] for c in order) for d in order),
    )
    groups = groups_of_shipped()
    random.shuffle(groups)
    assert site_groups(groups, shuffled) == expected


WAYS = Latencies(("a", "b", "c"), ((0, 10, 1), (90, 0, 1), (1, 1, 0)))


def test_latencies_count_from_what_is_read_to_where_it_is_read() -> None:
    """From a to b it takes 10 ms, from b to a 90."""
    ways = Latencies(("a", "b"), ((0, 10), (90, 0)))
    groups = [GeoGroup("s", frozenset({"a", "b"})), GeoGroup("g", reads=frozenset({"s"}))]
    assert site_groups(groups, ways)["g"].sites == ("b",)


def test_a_global_group_depends_on_the_sites_of_all_that_it_reads_also_global_ones() -> None:
    groups = [
        GeoGroup("last", reads=frozenset({"first", "mid"})),
        GeoGroup("mid", reads=frozenset({"first"}), pin="b"),
        GeoGroup("first", frozenset({"a"})),
    ]
    placed = site_groups(groups, WAYS)
    assert placed["mid"] == Sited(("b",), False, 10)
    assert (placed["last"].sites, placed["last"].latency_ms) == (("c",), 1)


def test_among_sites_with_the_same_latency_the_least_loaded_is_taken_then_the_first_by_name() -> None:
    same = Latencies(("x", "y", "z"), ((0, 5, 5), (5, 0, 5), (5, 5, 0)))
    groups = [GeoGroup("s", frozenset({"x", "y", "z"})), GeoGroup("g", reads=frozenset({"s"}))]
    assert site_groups(groups, same)["g"].sites == ("x",)
    assert site_groups(groups, same, {"x": 2, "y": 1, "z": 1})["g"].sites == ("y",)
