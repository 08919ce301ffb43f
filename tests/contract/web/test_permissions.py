"""Each endpoint's permission, over all roles, and problem documents for all refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipeline_runtime.model.error_codes import ERRORS
from tests.contract.web.conftest import PIPELINE, Caller
from webapp.accounts.models import Role
from webapp.audit.models import AuditRecord
from webapp.placements.models import Deployment

P = f"/pipelines/{PIPELINE}"
E = f"{P}/elements/power"
TOPIC = {"path": "plant/a", "title": "plant/a", "holds": "number"}
RULE = {"kind": "cpu", "threshold": 0.8, "for_s": 60}
BUSY = {"name": "busy", "rule": RULE}
MAIL = {"name": "mail", "url": "mailto://user:pass@example.org?to=you@example.org"}
SILENT = {"name": "silent", "rule": {"metric": "node_silent"}}
NOBODYS = "00000000-0000-0000-0000-000000000000"

# (method, path, body, the role it needs)
ENDPOINTS: list[tuple[str, str, Any, str]] = [
    ("GET", "/me", None, "viewer"),
    ("GET", "/overview", None, "viewer"),
    ("GET", "/events", None, "viewer"),
    ("GET", "/audit", None, "operator"),
    ("GET", "/audit/people", None, "operator"),
    ("GET", "/operators", None, "viewer"),
    ("POST", "/operators/mqtt-in/taken", {"params": {}, "ticked": [TOPIC]}, "viewer"),
    ("GET", "/operators/filter", None, "viewer"),
    ("GET", "/templates", None, "viewer"),
    ("GET", "/templates/numbers-average", None, "viewer"),
    ("GET", "/pipelines", None, "viewer"),
    ("GET", P, None, "viewer"),
    ("GET", f"{P}/export", None, "viewer"),
    ("GET", f"{P}/versions", None, "viewer"),
    ("GET", f"{P}/versions/1", None, "viewer"),
    ("GET", f"{P}/diff?from=1&to=draft", None, "viewer"),
    ("POST", f"{P}/validate", {}, "viewer"),
    ("POST", f"{P}/copies", {"document": {}, "elements": ["power"], "sites": ["hall"]}, "viewer"),
    ("GET", f"{P}/elements", None, "viewer"),
    ("GET", E, None, "viewer"),
    ("GET", f"{E}/history", None, "viewer"),
    ("GET", f"{P}/elements/alerts/state", None, "viewer"),
    ("GET", f"{P}/streams", None, "viewer"),
    ("GET", f"{P}/streams/nothing/queue?reader=power", None, "viewer"),
    ("GET", f"{P}/streams/nothing/dead-letters", None, "viewer"),
    ("GET", f"{P}/streams/nothing/dead-letters/file", None, "viewer"),
    ("GET", f"{P}/elements/nothing/dead-letters/rows", None, "viewer"),
    ("GET", f"{P}/elements/nothing/dead-letters/orders/{NOBODYS}", None, "viewer"),
    ("GET", f"{P}/elements/nothing/dead-letters/count?reason=no", None, "viewer"),
    ("POST", f"{E}/dead-letters/drop", {"offsets": [0]}, "operator"),
    ("POST", f"{E}/dead-letters/replay", {"offsets": [0]}, "operator"),
    ("POST", f"{E}/dead-letters/replay", {"offsets": [0], "rows": []}, "editor"),
    ("POST", f"{E}/dead-letters/orders/{NOBODYS}/cancel", None, "operator"),
    ("POST", f"{E}/dead-letters/orders/{NOBODYS}/put-back", None, "operator"),
    ("GET", "/handovers", None, "viewer"),
    ("GET", "/operations", None, "viewer"),
    ("POST", f"/operations/{NOBODYS}/hurry", None, "editor"),
    ("GET", "/nodes", None, "viewer"),
    ("GET", "/nodes/edge-a", None, "viewer"),
    ("GET", "/nodes/edge-a/history", None, "viewer"),
    ("GET", "/nodes/edge-a/log", None, "operator"),
    ("GET", f"{E}/log", None, "operator"),
    ("GET", "/map", None, "viewer"),
    ("GET", "/map/latencies", None, "viewer"),
    ("GET", "/map/rates", None, "viewer"),
    ("GET", "/files", None, "viewer"),
    ("GET", "/files/power", None, "viewer"),
    ("GET", "/files/power/report", None, "viewer"),
    ("POST", "/files/power/preview", {}, "viewer"),
    ("POST", "/files/power/import", {}, "editor"),
    ("POST", "/files/power/cancel", {}, "editor"),
    ("POST", "/files/power/again", {"reading": {}}, "editor"),
    ("DELETE", "/files/power", None, "editor"),
    ("GET", "/tokens", None, "viewer"),
    ("POST", "/tokens", {"name": "script"}, "viewer"),
    ("POST", f"{E}/preview", {"document": {}}, "editor"),
    ("PUT", f"{E}/pinned-rows", {"document": {}}, "editor"),
    ("DELETE", f"{E}/pinned-rows", None, "editor"),
    ("PUT", f"{E}/expected-rows", {"document": {}}, "editor"),
    ("POST", f"{P}/check-expected", None, "editor"),
    ("POST", f"{E}/pause", None, "operator"),
    ("POST", f"{E}/resume", None, "operator"),
    ("POST", f"{E}/go-on", {"way": "t is new"}, "operator"),
    ("POST", f"{E}/migrate", {"target": "edge-a"}, "operator"),
    ("POST", f"{E}/restore", {"target": "edge-a"}, "operator"),
    ("POST", f"{E}/checkpoints", None, "operator"),
    ("POST", f"{E}/standby", {"node": "edge-a"}, "operator"),
    ("DELETE", f"{E}/standby", None, "operator"),
    ("PUT", f"{E}/place", {"site": "edge-a"}, "operator"),
    ("DELETE", f"{E}/place", None, "operator"),
    ("POST", f"/handovers/{NOBODYS}/cancel", None, "operator"),
    ("PATCH", "/nodes/edge-a", {"site": "hall 1"}, "operator"),
    ("POST", "/nodes/edge-a/cordon", None, "operator"),
    ("POST", "/nodes/edge-a/uncordon", None, "operator"),
    ("POST", "/nodes/edge-a/drain", None, "operator"),
    ("PUT", "/map/latencies", {"matrix": "a,b\n0,1\n1,0"}, "operator"),
    ("DELETE", "/map/latencies", None, "operator"),
    ("PUT", "/map/rates", {"matrix": "a,b\n0,1\n1,0"}, "operator"),
    ("DELETE", "/map/rates", None, "operator"),
    ("GET", "/policies", None, "viewer"),
    ("GET", "/policies/1", None, "viewer"),
    ("GET", "/policies/log", None, "viewer"),
    ("POST", "/policies", BUSY, "operator"),
    ("PATCH", "/policies/1", {"enabled": False}, "operator"),
    ("DELETE", "/policies/1", None, "operator"),
    ("POST", "/policies/dry-run", {"rule": RULE}, "operator"),
    ("GET", "/alarms", None, "viewer"),
    ("GET", "/alarms/1", None, "viewer"),
    ("POST", "/alarms/1/acknowledge", {"note": "x"}, "operator"),
    ("POST", "/alarms/1/silence", {"until": "2030-01-01T00:00:00Z"}, "operator"),
    ("POST", "/alarms/1/unsilence", {}, "operator"),
    ("POST", "/alarms/1/clear", {}, "operator"),
    ("GET", "/alarms/metrics", None, "viewer"),
    ("GET", "/alarms/rules", None, "viewer"),
    ("POST", "/alarms/rules", SILENT, "operator"),
    ("PATCH", "/alarms/rules/1", {"enabled": False}, "operator"),
    ("DELETE", "/alarms/rules/1", None, "operator"),
    ("GET", "/alarms/messages", None, "viewer"),
    ("GET", "/alarms/channels", None, "viewer"),
    ("POST", "/alarms/channels", MAIL, "admin"),
    ("PATCH", "/alarms/channels/1", {"enabled": False}, "admin"),
    ("DELETE", "/alarms/channels/1", None, "admin"),
    ("POST", "/alarms/channels/1/test", None, "operator"),
    ("GET", "/alarms/routes", None, "viewer"),
    ("POST", "/alarms/routes", {"name": "all", "spec": {"channels": [1]}}, "operator"),
    ("PATCH", "/alarms/routes/1", {"enabled": False}, "operator"),
    ("DELETE", "/alarms/routes/1", None, "operator"),
    ("GET", "/connections", None, "viewer"),
    ("GET", "/connection-kinds", None, "viewer"),
    ("POST", "/connections", {"name": "b", "kind": "mqtt", "fields": {"host": "h"}}, "admin"),
    ("PUT", "/connections/edge-a", {"fields": {"host": "h"}}, "admin"),
    ("DELETE", "/connections/edge-a", None, "admin"),
    ("POST", "/connections/edge-a/test", {}, "operator"),
    ("POST", "/connection-test", {"kind": "mqtt", "node": "no", "fields": {"host": "h"}}, "admin"),
    ("GET", "/walls", None, "viewer"),
    ("GET", "/walls/hall", None, "viewer"),
    ("POST", "/walls/hall/look", {"curves": [{"tile": "t"}], "loads": [{"tile": "l"}]}, "viewer"),
    ("GET", "/walls/hall/links", None, "operator"),
    ("POST", "/walls", {"title": "Hall"}, "operator"),
    ("PUT", "/walls/hall", {"title": "Hall", "tiles": []}, "operator"),
    ("DELETE", "/walls/hall", None, "operator"),
    ("POST", "/walls/hall/links", {"name": "screen"}, "operator"),
    ("DELETE", "/walls/hall/links/1", None, "operator"),
    ("POST", "/pipelines", {"name": "another"}, "editor"),
    ("POST", "/documents/read", {"text": "kind: Pipeline"}, "editor"),
    ("GET", f"/documents?pipeline={PIPELINE}", None, "viewer"),
    ("POST", "/documents/read-several", {"text": "kind: Pipeline"}, "editor"),
    ("POST", "/documents/import", {"text": "kind: Pipeline", "pipelines": [{"at": 0}]}, "editor"),
    (
        "POST",
        "/documents/undo-import",
        {"pipelines": [{"name": PIPELINE, "title": "", "revision": 99, "version": None}]},
        "editor",
    ),
    ("POST", "/templates/numbers-average/pipelines", {"mark": True}, "editor"),
    ("POST", "/templates", {"pipeline": PIPELINE, "title": "T", "description": "D"}, "editor"),
    ("DELETE", "/templates/numbers-average", None, "editor"),
    ("PUT", P, {"document": {}}, "editor"),
    ("POST", f"{P}/versions", {"note": "x"}, "editor"),
    ("POST", f"{P}/rename", {"name": "power"}, "editor"),
    ("POST", f"{P}/versions/1/restore", None, "editor"),
    ("POST", f"{P}/deploy", {}, "editor"),
    ("POST", f"{P}/state", None, "editor"),
    ("GET", f"{P}/state", None, "editor"),
    ("DELETE", f"{P}/state", None, "editor"),
    ("POST", f"{P}/undeploy", None, "editor"),
    ("POST", f"{P}/run-again", None, "editor"),
    ("POST", f"{P}/bring-back", None, "operator"),
    ("GET", f"{P}/moves", None, "viewer"),
    ("POST", f"{P}/moves", {"moves": [{"element": "power", "target": "edge-a"}]}, "operator"),
    ("POST", f"{P}/moves/cancel", None, "operator"),
    ("POST", f"{P}/moves/1/cancel", None, "operator"),
    ("POST", f"{P}/sites", {"site": "hall", "change": "copy"}, "editor"),
    ("DELETE", P, None, "editor"),
    ("POST", "/nodes", {"name": "new"}, "admin"),
    ("DELETE", "/nodes/edge-a", None, "admin"),
    ("GET", "/users", None, "admin"),
    ("POST", "/users", {"username": "x", "password": "y"}, "admin"),
    ("PATCH", "/users/viewer-user", {"role": "viewer"}, "admin"),
]


def assert_problem(response: Any, status: int) -> dict[str, Any]:
    assert response.status_code == status, response.content
    assert response.headers["Content-Type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["title"]
    assert problem["type"]
    assert problem["detail"]
    assert isinstance(problem["faults"], list)
    assert problem["code"] in ERRORS
    assert problem["next"]
    assert problem.get("safe") or response.request["REQUEST_METHOD"] == "GET"
    return problem


@pytest.mark.parametrize(("method", "path", "body", "needed"), ENDPOINTS, ids=lambda item: str(item))
@pytest.mark.usefixtures("nobody_answers")
def test_an_endpoint_serves_exactly_the_roles_that_cover_it(
    caller: Callable[[str | None], Caller],
    deployment: Deployment,
    method: str,
    path: str,
    body: Any,
    needed: str,
) -> None:
    assert_problem(caller(None).call(method, path, body), 401)
    for role in Role:
        if not role.covers(Role(needed)):
            before = AuditRecord.objects.count()
            assert_problem(caller(role.value).call(method, path, body), 403)
            assert AuditRecord.objects.count() == before
    # The least role that is enough: it may be refused for another reason, but not for its role.
    response = caller(needed).call(method, path, body)
    assert response.status_code not in (401, 403), response.content
    # Here is no node that could tell its log, and no Kafka that could tell where a pipeline stands.
    no_answer = path.endswith(("/log", "/state")) and response.status_code == 503
    assert response.status_code < 500 or no_answer, response.content


def test_the_table_has_every_endpoint_that_changes_something() -> None:
    from webapp.api.api import api

    tested = {(method, path.split("?")[0]) for method, path, _, _ in ENDPOINTS}
    untested = []
    for path, methods in api.get_openapi_schema(path_prefix="")["paths"].items():
        for method in methods:
            concrete = (
                path.replace("/templates/{name}", "/templates/numbers-average")
                .replace("{name}", PIPELINE if "/pipelines" in path else "edge-a")
                .replace("/policies/{id}", "/policies/1")
                .replace("/alarms/{id}", "/alarms/1")
                .replace("/alarms/rules/{id}", "/alarms/rules/1")
                .replace("/alarms/routes/{id}", "/alarms/routes/1")
                .replace("/alarms/channels/{id}", "/alarms/channels/1")
                .replace("/walls/{id}", "/walls/hall")
                .replace("{link}", "1")
                .replace("{move}", "1")
                .replace("{id}", NOBODYS if path.startswith(("/handovers", "/operations")) else "power")
                .replace("{number}", "1")
                .replace("{type}", "mqtt-in")
                .replace("{order}", NOBODYS)
                .replace("{username}", "viewer-user")
            )
            if method != "get" and (method.upper(), concrete) not in tested:
                untested.append((method, path))
    # Enrolment has its own token, uploads their own body, tokens their owner: tested apart.
    assert sorted(untested) == [
        ("delete", "/tokens/{id}"),
        ("post", "/files"),
        ("post", "/nodes/enrol"),
        ("post", "/states"),
    ]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/nowhere", None, 404),
        ("GET", "/pipelines/nowhere", None, 404),
        ("GET", f"{P}/elements/nowhere", None, 404),
        ("GET", f"{P}/versions/99", None, 404),
        ("GET", "/nodes/nowhere", None, 404),
        ("GET", "/operators/teleport", None, 404),
        ("GET", "/templates/teleport", None, 404),
        ("POST", "/templates/teleport/pipelines", None, 404),
        ("DELETE", "/templates/teleport", None, 404),
        ("DELETE", "/templates/numbers-average", None, 409),
        ("POST", "/templates", {"pipeline": PIPELINE, "title": " ", "description": "D"}, 422),
        ("GET", f"/handovers/{NOBODYS}", None, 404),
        ("GET", f"/handovers/{NOBODYS}/details", None, 404),
        ("GET", "/events?limit=0", None, 422),
        ("GET", f"{P}/diff?from=x", None, 422),
        ("PATCH", P, None, 405),
        ("PUT", P, {"document": {}}, 428),
        ("POST", f"{E}/migrate", {"to": "edge-a"}, 422),
        ("POST", f"{E}/migrate", {"target": "nowhere"}, 422),
        ("POST", f"{E}/migrate", {"target": "cloud"}, 409),
        ("POST", f"{P}/elements/chart/migrate", {"target": "edge-a"}, 409),
        ("POST", f"{P}/moves", {"moves": []}, 422),
        ("POST", f"{P}/moves", {"moves": [{"element": "power", "target": "edge-a"}] * 501}, 422),
        ("POST", f"{P}/moves", {"moves": [{"element": "power", "target": "edge-a"}] * 2}, 422),
        ("POST", f"{P}/moves", {"moves": [{"element": "chart", "target": "edge-a"}]}, 422),
        ("POST", f"{P}/moves", {"moves": [{"element": "power", "target": "nowhere"}]}, 422),
        ("POST", f"{P}/moves/99/cancel", None, 404),
        ("POST", f"{P}/deploy", {}, 409),
        ("POST", f"{P}/copies", {"document": {}, "elements": ["power"], "sites": ["hall"]}, 422),
        ("POST", f"{P}/sites", {"site": "hall", "change": "copy"}, 409),
        ("POST", f"{P}/sites", {"site": "hall", "change": "move"}, 422),
        ("DELETE", P, None, 409),
        ("DELETE", "/nodes/edge-a", None, 409),
        ("GET", "/policies/99", None, 404),
        ("POST", "/policies", BUSY | {"rule": RULE | {"threshold": 1.5}}, 422),
        ("POST", "/policies", BUSY | {"rule": RULE | {"threshold": 0.1}}, 422),
        ("POST", "/policies", BUSY | {"name": "a/b"}, 422),
        ("POST", "/policies", BUSY | {"rule": RULE | {"for_s": 5}}, 422),
        ("POST", "/policies/dry-run", {"rule": RULE | {"for_s": 1}}, 422),
        ("GET", "/alarms/99", None, 404),
        ("POST", "/alarms/99/acknowledge", {"note": "x"}, 404),
        ("POST", "/alarms/99/acknowledge", {"note": "x" * 501}, 422),
        ("POST", "/alarms/99/silence", {"until": "2020-01-01T00:00:00Z"}, 422),
        ("POST", "/alarms/99/silence", {"until": "2030-01-01T00:00:00"}, 422),
        ("POST", "/alarms/rules", SILENT | {"rule": {"metric": "nothing"}}, 422),
        ("POST", "/alarms/rules", SILENT | {"rule": {"metric": "node_silent", "node": "nowhere"}}, 422),
        ("POST", "/alarms/rules", SILENT | {"rule": {"metric": "lag_rows", "element": "power"}}, 422),
        ("POST", "/alarms/rules", SILENT | {"name": " "}, 422),
        *[
            ("POST", "/alarms/channels", MAIL | {"url": url}, 422)
            for url in (
                "file:///etc/passwd",
                "syslog://localhost",
                "dbus://",
                "mailto://",
                "apprise://localhost/token",
                "mailto://u:p@example.org?pgp=yes&pgpkey=/etc/passwd",
                "jsons://example.org/?attach-as=x",
                "jsons://exa mple.org",
                "x" * 2001,
            )
        ],
        ("POST", "/alarms/routes", {"name": "all", "spec": {"channels": [99]}}, 422),
        ("POST", "/alarms/routes", {"name": "all", "spec": {"channels": []}}, 422),
        ("POST", "/alarms/routes", {"name": "all", "spec": {"channels": [1], "zone": "Mars"}}, 422),
        ("POST", "/alarms/routes", {"name": "all", "spec": {"channels": [1], "escalate_min": 5}}, 422),
        ("GET", "/walls/nowhere", None, 404),
        ("POST", "/walls/nowhere/look", {}, 404),
        ("POST", "/walls/hall/look", {"curves": [{"tile": "t"}] * 65}, 422),
        ("POST", "/walls/hall/look", {"curves": [{"tile": "t", "series": 8}]}, 422),
        ("POST", "/walls/hall/look", {"curves": [{"tile": "t", "after": "x"}]}, 422),
        ("POST", "/walls/hall/look", {"loads": [{"tile": "t", "after": -1}]}, 422),
        ("POST", "/walls", {"title": " "}, 422),
        ("POST", "/walls", {"title": "x" * 81}, 422),
        ("PUT", "/walls/nowhere", {"title": "x", "tiles": []}, 428),
        ("DELETE", "/walls/nowhere", None, 404),
        ("POST", "/walls/nowhere/links", {"name": "x"}, 404),
        ("POST", "/nodes", {"name": "Not A Name"}, 422),
        ("POST", "/pipelines", {"name": PIPELINE}, 409),
        ("GET", "/documents?pipeline=nowhere", None, 404),
        ("POST", "/documents/read-several", {"text": "# nothing"}, 422),
        ("POST", "/documents/import", {"text": "kind: Pipeline", "pipelines": [{"at": 0}]}, 422),
        ("POST", "/pipelines", {"name": "No Name!"}, 422),
        ("POST", "/users", {"username": "x", "password": "123"}, 422),
    ],
)
@pytest.mark.usefixtures("deployment")
def test_a_refusal_is_a_problem_document_and_changes_nothing(
    caller: Callable[[str | None], Caller], method: str, path: str, body: Any, status: int
) -> None:
    before = AuditRecord.objects.count()
    problem = assert_problem(caller("admin").call(method, path, body), status)
    if status == 422:
        assert problem["faults"]
        assert all(fault["path"] and fault["message"] for fault in problem["faults"])
    assert AuditRecord.objects.count() == before


def test_a_body_that_is_no_json_is_a_problem_document(caller: Callable[[str | None], Caller]) -> None:
    client = caller("editor").http
    response = client.post("/api/v1/pipelines", data="{", content_type="application/json")
    assert_problem(response, 400)
