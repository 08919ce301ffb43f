"""One Chromium for all browser tests, and windows in it that are signed in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

_WINDOW = ViewportSize(width=1440, height=900)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    program = shutil.which("chromium")
    assert program is not None, "Chromium is missing: apt-get install chromium (make test does it)"
    with sync_playwright() as playwright:
        # --no-sandbox: Chromium refuses to run as root, as build servers do, with its sandbox
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_dashboard(chromium: Browser, fogline: RunningFogline) -> Iterator[Callable[[str, str], Dashboard]]:
    """Signs in, in a window of its own: `open_dashboard(username, password)`.

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

    def open_page(username: str, password: str) -> Dashboard:
        context = chromium.new_context(base_url=fogline.url, viewport=_WINDOW, accept_downloads=True)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        watch(page)
        dashboard = Dashboard(page)
        dashboard.sign_in(username, password)
        return dashboard

    yield open_page
    for context in contexts:
        context.close()
    assert not wrong, "errors in the browser:\n" + "\n".join(wrong)


@pytest.fixture
def dashboard(open_dashboard: Callable[[str, str], Dashboard], fogline: RunningFogline) -> Dashboard:
    """Signed in as the generated account, an admin."""
    return open_dashboard(*fogline.login())
