"""One Chromium for all browser tests, and windows in it that are signed in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, StorageState, ViewportSize, expect, sync_playwright

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline
from tests.waiting import wait_until

_WINDOW = ViewportSize(width=1440, height=900)
_START_S = 180
_SITES = {"edge-a": "Hall 1", "edge-b": "Yard"}
_WATCHED: dict[str, Any] = {
    "apiVersion": "fogline/v1",
    "kind": "Pipeline",
    "metadata": {"name": "watched"},
    "spec": {
        "elements": [
            {"id": "numbers", "type": "generator", "params": {"rate": 1}, "node": "edge-a"},
            {
                "id": "positive",
                "type": "filter",
                "params": {"condition": "value > 0"},
                "inputs": {"in": "numbers"},
                "node": "edge-a",
            },
        ]
    },
}


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "Chromium is missing: apt-get install chromium (make test does it)"
    with sync_playwright() as playwright:
        # --no-sandbox: Chromium refuses to run as root, as build servers do, with its sandbox
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def signed_in() -> dict[str, StorageState]:
    """User name -> what the browser kept when this one had signed in: a password takes a while to check."""
    return {}


@pytest.fixture
def open_dashboard(
    chromium: Browser, fogline: RunningFogline, signed_in: dict[str, StorageState]
) -> Iterator[Callable[..., Dashboard]]:
    """Signs in, in a window of its own: `open_dashboard(username, password)`.

    More arguments, such as `has_touch`, are Playwright's for a context.

    No page of a test may log an error to the browser's console or throw.
    """
    expect.set_options(timeout=30_000)
    wrong: list[str] = []
    contexts = []

    def watch(page: Page) -> None:
        page.on("pageerror", lambda error: wrong.append(f"{page.url}: {error}"))
        page.on(
            "console",
            lambda message: wrong.append(f"{page.url}: {message.text}") if message.type == "error" else None,
        )

    def open_page(username: str, password: str, **options: Any) -> Dashboard:
        # What moves is drawn 60 times a second: a sixth of the browser's CPU.
        options = {"viewport": _WINDOW, "accept_downloads": True, "reduced_motion": "reduce", **options}
        context = chromium.new_context(base_url=fogline.url, storage_state=signed_in.get(username), **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        watch(page)
        dashboard = Dashboard(page)
        if username in signed_in:
            dashboard.open()
        else:
            dashboard.sign_in(username, password)
            signed_in[username] = context.storage_state()
        return dashboard

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, "errors in the browser:\n" + "\n".join(wrong)


@pytest.fixture
def dashboard(open_dashboard: Callable[..., Dashboard], fogline: RunningFogline) -> Dashboard:
    """Signed in as the generated account, an admin."""
    return open_dashboard(*fogline.login())


@pytest.fixture(scope="session")
def watched(shared_fogline: RunningFogline) -> str:
    """The name of a pipeline that runs, for tests that only look: `numbers` -> `positive`, a row a second.

    It is started once, so a test must leave it running, with the draft that it found.
    """
    name = "watched"
    with shared_fogline.client() as client:
        client.post("/api/v1/pipelines", json={"name": name, "document": _WATCHED}).raise_for_status()
        client.post(f"/api/v1/pipelines/{name}/deploy").raise_for_status()
        element = f"/api/v1/pipelines/{name}/elements/positive"
        wait_until(lambda: client.get(element).json()["rows_out_total"], "the first rows", _START_S)
    return name


@pytest.fixture
def sites(fogline: RunningFogline) -> Iterator[None]:
    """Each node stands at a site of its own until the test is over: edge-a in Hall 1, edge-b in the Yard."""
    with fogline.client() as client:
        for node, site in _SITES.items():
            client.patch(f"/api/v1/nodes/{node}", json={"site": site}).raise_for_status()
        yield
        for node in _SITES:
            client.patch(f"/api/v1/nodes/{node}", json={"site": ""}).raise_for_status()
