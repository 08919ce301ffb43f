"""The map: sites, the lines between them, the latencies that are given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.audit.models import AuditRecord
from webapp.nodes.links import SiteLink, site_links
from webapp.nodes.models import GivenLatency, Link, Node
from webapp.placements.fleet import Fleet
from webapp.placements.models import Deployment

Call = Callable[[str | None], Caller]
MATRIX = "hall,cloud,yard\n0,10,3\n12,0,4\n5,6,0\n"


def link(origin: Node, target: Node, rtt_ms: float | None, **more: Any) -> Link:
    made: Link = Link.objects.create(
        origin=origin, target=target, rtt_ms=rtt_ms, measured_at=timezone.now(), **more
    )
    return made


@pytest.fixture
def sited(nodes: dict[str, Node]) -> dict[str, Node]:
    """edge-a and edge-b in the hall; nobody has said where cloud is."""
    Node.objects.filter(name__in=["edge-a", "edge-b"]).update(site="hall")
    return {node.name: node for node in Node.objects.all()}


def test_the_map_has_sites_with_their_nodes_and_sources_and_the_lines_between(
    caller: Call, sited: dict[str, Node], deployment: Deployment
) -> None:
    Node.objects.filter(name="edge-b").update(up=False)
    link(sited["edge-a"], sited["cloud"], 20, bytes_per_s=3e6)
    found = caller("viewer").get("/map").json()
    cloud, hall = found["sites"]
    assert (cloud["name"], cloud["named"], hall["name"], hall["named"]) == ("cloud", False, "hall", True)
    assert [(node["name"], node["up"], node["cpu_ratio"]) for node in hall["nodes"]] == [
        ("edge-a", True, 0.25),
        ("edge-b", False, None),
    ]
    sources = [source for site in found["sites"] for source in site["sources"]]
    assert [(source["pipeline"], source["element"]) for source in sources] == [(PIPELINE, "readings")]
    site_of = {node["name"]: site["name"] for site in found["sites"] for node in site["nodes"]}
    [at] = [site["name"] for site in found["sites"] if site["sources"]]
    assert site_of[sources[0]["node"]] == at
    there, back = found["links"]
    assert (there["a"], there["b"], there["latency_ms"], there["bytes_per_s"]) == ("cloud", "hall", 10, 3e6)
    assert (back["a"], back["b"], back["latency_ms"], back["bytes_per_s"]) == ("hall", "cloud", 10, None)
    assert found["given"] == {"sites": [], "rows": [], "unknown": []}
    assert found["broker"] == []
    now = timezone.now()
    for name, rtt_ms in (("edge-a", 40.0), ("edge-b", 44.0)):
        Node.objects.filter(name=name).update(broker_rtt_ms=rtt_ms, broker_measured_at=now)
    [way] = caller("viewer").get("/map").json()["broker"]
    assert way == {"site": "hall", "latency_ms": 21.0, "measured_at": now.isoformat()}


def test_a_line_that_no_probe_gets_through_says_since_when(caller: Call, sited: dict[str, Node]) -> None:
    since = timezone.now() - timedelta(minutes=3)
    link(sited["edge-a"], sited["cloud"], 20, unreachable_since=since)
    assert {
        (each["a"], each["b"], each["latency_ms"], each["unreachable_since"])
        for each in caller("viewer").get("/map").json()["links"]
    } == {("cloud", "hall", None, since.isoformat()), ("hall", "cloud", None, since.isoformat())}
    caller("operator").put("/map/latencies", {"matrix": "hall,cloud\n0,10\n12,0"})
    given = {(each["a"], each["b"]): each for each in caller("viewer").get("/map").json()["links"]}
    assert given["hall", "cloud"]["latency_ms"] == 10
    assert given["hall", "cloud"]["unreachable_since"], "what is given does not hide that it is broken"


def test_latencies_that_are_given_beat_what_is_measured_until_they_are_removed(
    caller: Call, sited: dict[str, Node]
) -> None:
    measured = link(sited["edge-a"], sited["cloud"], 100).measured_at
    operator = caller("operator")
    answer = operator.put("/map/latencies", {"matrix": MATRIX})
    assert answer.status_code == 200
    matrix = {
        "sites": ["hall", "cloud", "yard"],
        "rows": [[0, 10, 3], [12, 0, 4], [5, 6, 0]],
        "unknown": ["yard"],
    }
    assert answer.json() == matrix
    assert caller("viewer").get("/map/latencies").json() == matrix
    assert site_links() == [
        SiteLink("cloud", "hall", 12, None, "given", measured),
        SiteLink("hall", "cloud", 10, None, "given", measured),
    ]
    operator.put("/map/latencies", {"matrix": "hall,cloud\n0,7\n8,0"})
    assert {link.latency_ms for link in site_links()} == {7, 8}, "the whole matrix is replaced"
    for _ in range(2):
        assert operator.delete("/map/latencies").status_code == 204
    assert {(link.latency_ms, link.source) for link in site_links()} == {(50, "measured")}
    actions = AuditRecord.objects.filter(target="map").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["map.latencies", "map.latencies", "map.latencies_removed"]


def test_rates_that_are_given_beat_what_is_measured_until_they_are_removed(
    caller: Call, sited: dict[str, Node]
) -> None:
    link(sited["edge-a"], sited["cloud"], 100, bytes_per_s=3e6)
    link(sited["cloud"], sited["edge-a"], 100, bytes_per_s=5e6)

    def lines() -> list[tuple[str, str, float | None, bool]]:
        found = caller("viewer").get("/map").json()["links"]
        return [(each["a"], each["b"], each["bytes_per_s"], each["rate_given"]) for each in found]

    answer = caller("operator").put("/map/rates", {"matrix": "hall,cloud\n0,0\n0.8,0"})
    assert answer.json() == {"sites": ["hall", "cloud"], "rows": [[0, 0], [0.8, 0]], "unknown": []}
    # One way is slow; 0 says nothing of the other.
    assert lines() == [("cloud", "hall", 1e5, True), ("hall", "cloud", 5e6, False)]
    assert Fleet().ground(None, {}, {}).bytes_per_s["cloud", "hall"] == 1e5
    refused = caller("operator").put("/map/rates", {"matrix": "hall,cloud\n0,fast\n1,0"})
    problem = assert_problem(refused, 422)
    assert "The rates cannot be read: line 2" in problem["detail"]
    for _ in range(2):
        assert caller("operator").delete("/map/rates").status_code == 204
    assert lines() == [("cloud", "hall", 3e6, False), ("hall", "cloud", 5e6, False)]
    actions = AuditRecord.objects.filter(target="map").order_by("pk").values_list("action", flat=True)
    assert list(actions) == ["map.rates", "map.rates_removed"]


@pytest.mark.parametrize(
    ("matrix", "line", "says"),
    [
        ("", 1, "name the sites"),
        ("hall,cloud\n0,1", 2, "need 2 rows"),
        ("hall,cloud\n0,1\n\n1", 4, "1 values for 2 sites"),
        ("hall,cloud\n0,-1\n1,0", 2, "no latency in ms to cloud"),
        ("hall,hall\n0,1\n1,0", 1, "stands there twice"),
        ("hall,<b>\n0,1\n1,0", 1, "not a name for a site"),
        ("hall,cloud\n0,1\n1e9,0", 3, "a latency in ms of more than 600,000"),
        (",".join(f"s{n}" for n in range(101)) + ("\n" + ",".join(["0"] * 101)) * 101, 1, "at most 100"),
    ],
)
def test_a_matrix_that_does_not_fit_says_where_and_what_was_given_stays(
    caller: Call, sited: dict[str, Node], matrix: str, line: int, says: str
) -> None:
    caller("operator").put("/map/latencies", {"matrix": MATRIX})
    problem = assert_problem(caller("operator").put("/map/latencies", {"matrix": matrix}), 422)
    [fault] = problem["faults"]
    assert fault["path"] == f"matrix.line {line}"
    assert says in fault["message"]
    assert GivenLatency.objects.count() == 9
    assert AuditRecord.objects.filter(target="map").count() == 1
