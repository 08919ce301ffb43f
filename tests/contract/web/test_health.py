"""/healthz, /readyz and /metrics: what machines read."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from tests.contract.web.conftest import PIPELINE, Caller, report
from tests.waiting import PATIENCE_S
from webapp.handovers.models import Handover
from webapp.monitoring import health
from webapp.nodes.models import Node
from webapp.placements.models import Deployment

Call = Callable[[str | None], Caller]
SAMPLE = re.compile(r"(?P<name>[a-z_]+)(\{(?P<labels>[^}]*)\})? (?P<value>\S+)")


def test_ready_when_all_it_needs_answers(
    transactional_db: None, settings: Any, kafka: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "TIMEOUT_S", PATIENCE_S)
    security = {"bootstrap_timeout_ms": PATIENCE_S * 1000}
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"kafka": kafka, "kafka_security": security})
    response = Client().get("/readyz")
    assert response.json() == {"status": "ok", "database": "ok", "redis": "ok", "kafka": "ok"}
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("away", "name"), [({"kafka": "127.0.0.1:1"}, "kafka"), ({"redis_url": "redis://127.0.0.1:1/0"}, "redis")]
)
def test_not_ready_names_what_is_away_and_stays_alive(
    transactional_db: None, settings: Any, away: dict[str, str], name: str
) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update=away)
    response = Client().get("/readyz")
    assert response.status_code == 503
    assert response.json()["status"] == "unavailable"
    assert response.json()[name].startswith("away")
    assert Client().get("/healthz").status_code == 200


def samples(text: str) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            labels = dict(re.findall(r'(\w+)="([^"]*)"', match["labels"] or ""))
            found.setdefault(match["name"], []).append((labels, float(match["value"])))
    return found


def test_metrics_have_the_names_and_labels_of_the_design(
    deployment: Deployment, nodes: dict[str, Node]
) -> None:
    now_ms = int(timezone.now().timestamp() * 1000)
    batch_ms = {"batch_ms_p50": 80.0, "batch_ms_p95": 150.0, "batch_ms_p99": 160.0}
    report(deployment, "power", nodes["cloud"], checkpoint_at_ms=now_ms - 5000, lag_rows=3, **batch_ms)
    Node.objects.filter(name="edge-a").update(up=False)
    Handover.objects.create(
        deployment=deployment,
        group="power",
        element="power",
        kind="migration",
        strategy="stop-and-copy",
        origin="edge-a",
        target="cloud",
        outcome="done",
        gap_ms=250,
        measured={"last_commit_at_ms": 1_000, "first_commit_at_ms": 1_250},
        begun={"start": "warm", "bytes": None, "had": False},
    )
    response = Client().get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    found = samples(response.content.decode())
    power = {"pipeline": PIPELINE, "element": "power", "node": "cloud"}
    assert (power, 700.0) in found["fogline_element_rows_in_total"]
    assert (power, 70.0) in found["fogline_element_rows_out_total"]
    assert (power, 0.0) in found["fogline_element_dead_letters_total"]
    assert (power, 3.0) in found["fogline_element_lag_rows"]
    batches = {
        labels["quantile"]: seconds
        for labels, seconds in found["fogline_element_batch_seconds"]
        if labels["element"] == "power"
    }
    assert batches == {"0.5": 0.08, "0.95": 0.15, "0.99": 0.16}
    assert power in [labels for labels, _ in found["fogline_element_state_bytes"]]
    ages = {labels["element"]: age for labels, age in found["fogline_checkpoint_age_seconds"]}
    assert 5 <= ages["power"] <= 5 + timezone.now().timestamp() - now_ms / 1000
    assert ({"node": "edge-a"}, 0.0) in found["fogline_node_up"]
    assert ({"node": "cloud"}, 0.25) in found["fogline_node_cpu_ratio"]
    assert ({"node": "cloud"}, 2e9) in found["fogline_node_memory_bytes"]
    assert (power, 0.25) in found["fogline_handover_pause_seconds"]
    Node.objects.filter(name="cloud").update(up=False)
    found = samples(Client().get("/metrics").content.decode())
    assert power not in [labels for labels, _ in found.get("fogline_element_lag_rows", ())]
    assert "fogline_element_batch_seconds" not in found


def test_no_sum_over_a_groups_elements_counts_twice(deployment: Deployment, nodes: dict[str, Node]) -> None:
    """Rows are each element's own; what only the group has is there once, under the group's id."""
    rows = {
        "variation": {"rows_in_total": 700, "rows_out_total": 90, "dead_letters_total": 3},
        "alerts": {"rows_in_total": 90, "rows_out_total": 70, "dead_letters_total": 0},
    }
    now_ms = int(timezone.now().timestamp() * 1000)
    measured = {"state_bytes": 4096, "lag_rows": 5, "dead_letters_total": 3, "batch_ms_p50": 20.0}
    report(deployment, "watch", nodes["edge-b"], elements=rows, checkpoint_at_ms=now_ms, **measured)
    found = samples(Client().get("/metrics").content.decode())

    def by_element(name: str) -> dict[str, float]:
        of_group = ("variation", "alerts", "watch")
        return {labels["element"]: value for labels, value in found[name] if labels["element"] in of_group}

    assert by_element("fogline_element_rows_in_total") == {"variation": 700, "alerts": 90}
    assert by_element("fogline_element_rows_out_total") == {"variation": 90, "alerts": 70}
    assert by_element("fogline_element_dead_letters_total") == {"variation": 3, "alerts": 0}
    for name, value in (
        ("fogline_element_lag_rows", 5),
        ("fogline_element_state_bytes", 4096),
        ("fogline_element_batch_seconds", 0.02),
    ):
        assert by_element(name) == {"watch": value}
    assert set(by_element("fogline_checkpoint_age_seconds")) == {"watch"}


@pytest.mark.parametrize("known", [{}, {"variation": {"rows_in_total": None, "rows_out_total": None}}])
def test_rows_that_spark_alone_saw_are_the_groups_once(
    deployment: Deployment, nodes: dict[str, Node], known: dict[str, Any]
) -> None:
    report(deployment, "watch", nodes["edge-b"], elements=known)
    found = samples(Client().get("/metrics").content.decode())
    of_group = [(labels["element"], value) for labels, value in found["fogline_element_rows_in_total"]]
    assert [item for item in of_group if item[0] in ("variation", "alerts", "watch")] == [("watch", 700)]


def test_metrics_are_for_this_machine_or_for_who_has_the_token(transactional_db: None, settings: Any) -> None:
    assert Client().get("/metrics", REMOTE_ADDR="10.0.0.9").status_code == 401
    settings.METRICS_TOKEN = "a-token"
    assert Client().get("/metrics").status_code == 401
    assert Client().get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    allowed = Client().get("/metrics", headers={"Authorization": "Bearer a-token"}, REMOTE_ADDR="10.0.0.9")
    assert allowed.status_code == 200


def test_the_openapi_document_lists_the_paths_of_the_design(caller: Call) -> None:
    paths = caller("viewer").http.get("/api/v1/openapi.json").json()["paths"]
    assert {
        "/api/v1/pipelines",
        "/api/v1/pipelines/{name}/deploy",
        "/api/v1/pipelines/{name}/elements/{id}/migrate",
        "/api/v1/pipelines/{name}/elements/{id}/restore",
        "/api/v1/pipelines/{name}/streams/{stream}/peek",
        "/api/v1/handovers/{id}/cancel",
        "/api/v1/nodes/{name}/drain",
        "/api/v1/files",
        "/api/v1/tokens",
        "/api/v1/users",
        "/api/v1/operators/{type}",
    } <= set(paths)
