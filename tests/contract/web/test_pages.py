"""Pages: who sees them, what they say, and what a browser may load for them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from tests.contract.web.conftest import PASSWORD, PIPELINE, Caller
from webapp.handovers.models import Handover
from webapp.placements.models import Deployment
from webapp.walls.models import Wall

Call = Callable[[str | None], Caller]
PAGES = [
    "/",
    "/pipelines/",
    f"/pipelines/{PIPELINE}",
    f"/pipelines/{PIPELINE}/elements/power",
    "/templates/",
    "/files/",
    "/templates/machine-power",
    "/nodes/",
    "/nodes/cloud",
    "/map/",
    "/connections/",
    "/policies/",
    "/walls/",
    "/walls/hall",
    "/events/",
    "/errors/",
    "/errors/no-node",
]
VIEWS = [
    "overview",
    "pipelines",
    "editor",
    "element",
    "templates",
    "files",
    "template",
    "nodes",
    "node",
    "map",
    "connections",
    "policies",
    "walls",
    "wall",
    "shared-wall",
    "events",
    "handover",
    "shell",
]


@pytest.fixture
def bundle(tmp_path: Path, settings: Any) -> None:
    """A manifest as Vite writes it; the tests of the browser build the real one."""
    entries = {
        f"{view}.ts": {"file": f"assets/{view}-12345678.js", "name": view, "isEntry": True} for view in VIEWS
    }
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(entries))
    settings.VITE_MANIFEST = path


@pytest.fixture(autouse=True)
def hall(transactional_db: None) -> None:
    Wall.objects.create(id="hall", title="Hall")


def props(response: Any) -> dict[str, Any]:
    match = re.search(r'data-props="([^"]*)"', response.content.decode())
    assert match is not None
    found: dict[str, Any] = json.loads(unescape(match.group(1)))
    return found


@pytest.mark.usefixtures("deployment", "bundle")
@pytest.mark.parametrize("path", PAGES)
def test_a_page_is_for_who_has_signed_in(caller: Call, path: str) -> None:
    refused = caller(None).http.get(path)
    assert refused.status_code == 302
    assert refused.headers["Location"].startswith("/accounts/login/?next=")
    response = caller("viewer").http.get(path)
    assert response.status_code == 200
    assert props(response)["user"] == {"username": "viewer-user", "role": "viewer"}
    assert props(response)["csrf"]
    assert "no-store" in response.headers["Cache-Control"]


@pytest.mark.usefixtures("bundle")
def test_each_view_loads_its_entry_and_knows_what_it_shows(caller: Call, deployment: Deployment) -> None:
    handover = Handover.objects.create(
        deployment=deployment,
        group="power",
        element="power",
        kind="migration",
        strategy="stop-and-copy",
        origin="cloud",
        target="edge-b",
        begun={"start": "warm", "bytes": None, "had": False},
    )
    http = caller("viewer").http
    editor = http.get(f"/pipelines/{PIPELINE}?mode=live")
    assert b'data-view="editor"' in editor.content
    assert b"/static/assets/editor-12345678.js" in editor.content
    assert b"/static/assets/shell-12345678.js" in editor.content
    assert (props(editor)["pipeline"], props(editor)["mode"]) == (PIPELINE, "live")
    assert props(http.get(f"/pipelines/{PIPELINE}"))["mode"] == "edit"
    element = props(http.get(f"/pipelines/{PIPELINE}/elements/power"))
    assert (element["pipeline"], element["element"]) == (PIPELINE, "power")
    assert props(http.get("/templates/machine-power"))["template"] == "machine-power"
    assert props(http.get("/nodes/cloud"))["node"] == "cloud"
    assert props(http.get("/walls/hall"))["wall"] == "hall"
    assert props(http.get(f"/handovers/{handover.pk}"))["id"] == str(handover.pk)


@pytest.mark.usefixtures("deployment", "bundle")
@pytest.mark.parametrize("path", [*PAGES, "/walls/hall/shared", "/accounts/login/", "/nowhere"])
def test_a_browser_runs_only_what_comes_from_here(caller: Call, path: str) -> None:
    headers = caller("viewer" if path != "/accounts/login/" else None).http.get(path).headers
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert re.fullmatch(r"'self' 'nonce-\S{16,}'", policy["script-src"])
    assert policy["default-src"] == "'self'"
    assert policy["object-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"


@pytest.mark.usefixtures("bundle")
def test_the_page_of_a_link_is_for_everybody_and_knows_nothing(caller: Call) -> None:
    for caller_of in (None, "viewer"):
        there, gone = (caller(caller_of).http.get(f"/walls/{id}/shared") for id in ("hall", "gone"))
        assert (there.status_code, gone.status_code) == (200, 200)
        assert set(props(there)) == {"wall", "version"}
        assert b"viewer-user" not in there.content
        assert b'id="rail"' not in there.content
        assert b"data-view" not in there.content
        assert "no-store" in there.headers["Cache-Control"]


@pytest.mark.usefixtures("bundle")
def test_each_answer_has_a_nonce_of_its_own(caller: Call) -> None:
    http = caller("viewer").http
    nonces = set()
    for _ in range(3):
        response = http.get("/")
        (nonce,) = re.findall(r'name="csp-nonce" content="([^"]+)"', response.content.decode())
        assert f"'nonce-{nonce}'" in response.headers["Content-Security-Policy"]
        nonces.add(nonce)
    assert len(nonces) == 3


@pytest.mark.usefixtures("bundle")
def test_what_a_user_named_cannot_become_markup(caller: Call, users: Any) -> None:
    users["viewer"].username = '"><script>alert(1)</script>'
    users["viewer"].save()
    response = caller("viewer").http.get("/")
    assert b"<script>alert" not in response.content
    assert props(response)["user"]["username"] == '"><script>alert(1)</script>'


def test_a_missing_bundle_says_what_to_do(caller: Call, settings: Any, tmp_path: Path) -> None:
    settings.VITE_MANIFEST = tmp_path / "missing.json"
    response = caller("viewer").http.get("/")
    assert response.status_code == 200
    assert b"make up" in response.content
    assert caller(None).http.get("/accounts/login/").status_code == 200


@pytest.mark.usefixtures("bundle")
@pytest.mark.parametrize("path", ["/nowhere", "/pipelines/nowhere", "/templates/nowhere", "/nodes/nowhere"])
def test_a_page_that_is_not_there_says_so(caller: Call, path: str) -> None:
    response = caller("viewer").http.get(path)
    assert response.status_code == 404
    assert b"There is no" in response.content
    assert b"Go to the overview" in response.content


@pytest.mark.usefixtures("bundle")
def test_a_failure_says_that_pipelines_go_on(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.pages import views as pages

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(pages, "view_page", fail)
    client = caller("viewer").http
    client.raise_request_exception = False
    response = client.get("/")
    assert response.status_code == 500
    assert b"keep running" in response.content
    assert b"broken" not in response.content


def test_a_failure_of_the_api_is_a_problem_document(caller: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    from webapp.api import overview

    def fail(*args: Any) -> Any:
        raise RuntimeError("broken")

    monkeypatch.setattr(overview, "whole_board", fail)
    client = caller("viewer").http
    client.raise_request_exception = False
    response = client.get("/api/v1/overview")
    assert response.status_code == 500
    assert response.headers["Content-Type"] == "application/problem+json"
    assert b"broken" not in response.content


def test_a_form_without_its_token_is_explained(users: Any) -> None:
    response = Client(enforce_csrf_checks=True).post("/accounts/login/", {"username": "x", "password": "y"})
    assert response.status_code == 403
    assert b"out of date" in response.content


def test_another_host_name_is_refused(users: Any) -> None:
    assert Client().get("/accounts/login/", headers={"host": "evil.example"}).status_code == 400


def test_the_session_cookie_is_for_this_server_alone(users: Any, settings: Any) -> None:
    client = Client()
    client.post("/accounts/login/", {"username": "viewer-user", "password": PASSWORD})
    cookie = client.cookies[settings.SESSION_COOKIE_NAME]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"
