"""Who probes whom, and what the probes say together of the way from one site to another."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from pipeline_runtime.placement.links import (
    PEERS_MAX,
    WEIGHT,
    Measurement,
    Place,
    SiteLink,
    between_sites,
    peers,
    smoothed,
    unreachable,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def probe(
    origin: str,
    target: str,
    rtt_ms: float | None,
    rate: float | None = None,
    age_s: float = 0,
    broken_s: float | None = None,
) -> Measurement:
    since = None if broken_s is None else NOW - timedelta(seconds=broken_s)
    return Measurement(origin, target, rtt_ms, rate, NOW - timedelta(seconds=age_s), since)


def places(**nodes_at: int) -> list[Place]:
    return [Place(f"{site}-{number}", site) for site, many in nodes_at.items() for number in range(many)]


# -- peers ---------------------------------------------------------------------------------------------


def test_a_node_probes_up_to_two_of_each_other_site_and_none_of_its_own() -> None:
    there = places(hall=3, yard=2, cloud=1)
    assert peers("hall-0", there) == ("cloud-0", "yard-0", "yard-1")
    assert peers("cloud-0", there) == ("hall-0", "hall-1", "yard-0", "yard-1")
    assert peers("hall-0", list(reversed(there))) == peers("hall-0", there)


@pytest.mark.parametrize("there", [[], places(hall=3)], ids=["unknown", "one site"])
def test_without_another_site_there_is_nothing_to_probe(there: list[Place]) -> None:
    assert peers("hall-0", there) == ()


def test_nodes_of_one_site_share_those_of_another() -> None:
    there = places(hall=4, yard=8)
    probed = Counter(name for number in range(4) for name in peers(f"hall-{number}", there))
    assert probed == {f"yard-{number}": 1 for number in range(8)}


def test_however_many_there_are_a_node_probes_a_bounded_number_of_sites_as_many_as_can_be() -> None:
    there = [Place(f"n{number}", f"n{number}") for number in range(60)] + places(hall=3)
    of = {node: peers(node, there) for node in ("hall-0", "hall-1", "hall-2", "n7")}
    assert {len(those) for those in of.values()} == {PEERS_MAX}
    assert len({*of["hall-0"], *of["hall-1"], *of["hall-2"]}) == 60, "together they reach all"


# -- links ---------------------------------------------------------------------------------------------


def test_latency_is_half_the_median_round_trip_whoever_measured_and_the_rate_is_that_of_its_direction() -> (
    None
):
    found = between_sites(
        [probe("hall", "cloud", 20, 3e6), probe("hall", "cloud", 22, 5e6), probe("cloud", "hall", 30, 1e6)],
        {},
        {"hall", "cloud", "yard"},
    )
    assert found == {
        ("hall", "cloud"): SiteLink(11, 1e6, "measured", NOW),  # the cloud fetched from the hall
        ("cloud", "hall"): SiteLink(11, 4e6, "measured", NOW),
    }


def test_what_was_given_beats_what_was_measured_in_its_own_direction_alone() -> None:
    found = between_sites(
        [probe("hall", "cloud", 20, 3e6)],
        {("cloud", "hall"): 7.5, ("cloud", "gone"): 1, ("hall", "hall"): 0},
        ["hall", "cloud"],
    )
    assert found["cloud", "hall"] == SiteLink(7.5, 3e6, "given", NOW)
    assert found["hall", "cloud"].source == "measured"
    assert len(found) == 2


def test_what_was_measured_long_before_another_pair_counts_no_more_and_alone_it_counts() -> None:
    old = probe("hall", "cloud", 500, age_s=3600)
    assert between_sites([old], {}, ["hall", "cloud"])["hall", "cloud"].latency_ms == 250
    found = between_sites([old, probe("cloud", "hall", 20)], {}, ["hall", "cloud"])
    assert found["hall", "cloud"].latency_ms == 10


def test_a_line_that_no_probe_gets_through_has_no_latency_unless_one_is_given() -> None:
    broken = [probe("hall", "cloud", 20, broken_s=90), probe("cloud", "hall", None, broken_s=30)]
    sites = ["hall", "cloud"]
    assert between_sites(broken, {}, sites) == {}
    assert between_sites(broken, {("hall", "cloud"): 4}, sites) == {
        ("hall", "cloud"): SiteLink(4, None, "given", None)
    }
    assert unreachable(broken, sites) == {("cloud", "hall"): NOW - timedelta(seconds=30)}


def test_a_line_that_one_probe_gets_through_is_not_broken() -> None:
    some = [probe("hall", "cloud", 20, broken_s=90), probe("cloud", "hall", 30)]
    assert unreachable(some, ["hall", "cloud"]) == {}
    assert between_sites(some, {}, ["hall", "cloud"])["hall", "cloud"].latency_ms == 15


def test_a_new_value_moves_the_smoothed_one_by_its_weight_and_the_first_counts_whole() -> None:
    assert smoothed(None, 8.0) == 8.0
    assert smoothed(10.0, 20.0) == pytest.approx(10 + WEIGHT * 10)
