"""Which sites groups run at, by SpanEdge's rule; the example that its scheduler comes with."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import given, strategies as st

from pipeline_runtime.placement.geo import GeoGroup, Latencies, Sited, site_groups, zone_targets
from pipeline_runtime.placement.geo_files import read_latencies, read_sources

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
    assert "at most 30 ms" in placed["global"].why


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
    assert placed["mid"] == Sited(("b",), False, 10, "pinned")
    assert (placed["last"].sites, placed["last"].latency_ms) == (("c",), 1)


def test_of_sites_that_are_alike_the_least_loaded_is_taken_then_by_name() -> None:
    same = Latencies(("x", "y", "z"), ((0, 5, 5), (5, 0, 5), (5, 5, 0)))
    groups = [GeoGroup("s", frozenset({"x", "y", "z"})), GeoGroup("g", reads=frozenset({"s"}))]
    assert site_groups(groups, same)["g"].sites == ("x",)
    assert site_groups(groups, same, {"x": 2, "y": 1, "z": 1})["g"].sites == ("y",)


def test_what_does_not_fit_goes_to_the_next_best_site_and_what_fits_nowhere_says_why() -> None:
    groups = [GeoGroup("s", frozenset({"a"})), GeoGroup("g", reads=frozenset({"s"}))]

    def full(*sites: str, of: str = "g"):  # type: ignore[no-untyped-def]
        return lambda group, site: "its memory is used up" if group == of and site in sites else None

    assert site_groups(groups, WAYS, fit=full("a"))["g"].sites == ("c",)
    nowhere = site_groups(groups, WAYS, fit=full("a", "b", "c"))["g"]
    assert (nowhere.sites, nowhere.problem) == (
        (),
        "no site can run it (a: its memory is used up; b: its memory is used up; c: its memory is used up)",
    )
    local = site_groups(groups, WAYS, fit=full("a", of="s"))["s"]
    assert local.problem == "it has to run at each site of its sources, and cannot: a: its memory is used up"


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([GeoGroup("g", reads=frozenset({"nobody"}))], "g reads from nobody, which is no group here"),
        ([GeoGroup("a", reads=frozenset({"b"})), GeoGroup("b", reads=frozenset({"a"}))], "in a circle: "),
    ],
)
def test_groups_that_hang_together_in_no_order_are_refused(groups: list[GeoGroup], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        site_groups(groups, WAYS)


def test_a_site_of_a_source_without_latencies_is_named() -> None:
    groups = [GeoGroup("s", frozenset({"moon"})), GeoGroup("g", reads=frozenset({"s"}))]
    placed = site_groups(groups, WAYS)
    assert placed["s"].sites == ("moon",)
    assert placed["g"].problem == "the latencies from moon are not known"


def test_what_is_emitted_at_a_site_stays_there_where_somebody_reads_it_there() -> None:
    copies = {"count@a": ["a"], "count@b": ["b"], "all": ["c"]}
    assert zone_targets("a", copies) == ["count@a"]
    assert zone_targets("d", copies) == ["all", "count@a", "count@b"]
