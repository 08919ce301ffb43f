"""Starts a Fogline with the demo in a temporary directory, and takes the pictures of docs/images.

`make pictures` takes all; `make pictures PARTS="tutorial"` takes some of: views, drag, pages, tutorial.
`pages` also takes pictures of other sizes, for whoever changes those pages, into build/pictures.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import StorageState, expect, sync_playwright

from tests.browser.dashboard import Dashboard
from tests.pictures import demo, pages, tutorial
from tests.running import PROJECT, RunningFogline
from tests.waiting import wait_until

IMAGES = PROJECT / "docs" / "images"
LOOKS = PROJECT / "build" / "pictures"
PARTS = ("views", "drag", "pages", "tutorial")
_NODES = ("edge-a", "edge-b", "cloud")
_WINDOW = {"width": 1600, "height": 1000}  # cards are drawn with all that they say
_FIRST_MINUTE_S = 300.0


def main(parts: list[str]) -> None:
    unknown = set(parts) - set(PARTS)
    if unknown:
        sys.exit(f"There is no part {', '.join(sorted(unknown))}: {', '.join(PARTS)}")
    for name in list(os.environ):  # the developer's own Fogline has no part in this
        if (name.startswith("FOGLINE_") and name != "FOGLINE_IVY_SETTINGS") or name in (
            "REDIS_URL",
            "DATABASE_URL",
        ):
            del os.environ[name]
    expect.set_options(timeout=30_000)
    with (
        tempfile.TemporaryDirectory(prefix="fogline-pictures-") as data,
        RunningFogline(Path(data), nodes=_NODES, demo=True, FOGLINE_LATENCY_MS="500") as fogline,
        windows(fogline) as open_window,
    ):
        if "tutorial" in parts:
            tutorial.walk(open_window, IMAGES)
        if {"views", "drag", "pages"} & set(parts):
            _wait_for_the_first_minute(fogline)
        if "views" in parts:
            demo.views(open_window, IMAGES)
        if "drag" in parts:
            demo.drag(open_window, IMAGES / "drag.webp")
        if "pages" in parts:
            pages.pages(open_window, fogline, IMAGES, LOOKS)
    print(f"The pictures are in {IMAGES}: {', '.join(parts)}. Look at them before you commit them.")


@contextmanager
def windows(fogline: RunningFogline) -> Iterator[demo.Open]:
    """Opens windows that are signed in; arguments are Playwright's for a context."""
    program = shutil.which("chromium")
    assert program is not None, "Chromium is missing: apt-get install chromium (make pictures does it)"
    kept: list[StorageState] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

        def open_window(**options: Any) -> Dashboard:
            options = {"viewport": _WINDOW, "color_scheme": "light", **options}
            context = browser.new_context(base_url=fogline.url, storage_state=(kept or [None])[0], **options)
            dashboard = Dashboard(context.new_page())
            dashboard.page.set_default_timeout(30_000)
            if kept:
                dashboard.open()
            else:
                dashboard.sign_in(*fogline.login())
                kept.append(context.storage_state())
            return dashboard

        try:
            yield open_window
        except BaseException:
            for context in browser.contexts:
                for page in context.pages:
                    page.screenshot(path=PROJECT / "build" / "pictures-failed.png")
            raise
        browser.close()


def _wait_for_the_first_minute(fogline: RunningFogline) -> None:
    """Charts then have something to show."""
    with fogline.client() as client:
        element = f"/api/v1/pipelines/{demo.PIPELINE}/elements/{demo.ELEMENT}"  # it gives a row every second
        wait_until(
            lambda: (client.get(element).json().get("rows_out_total") or 0) >= 60, "a minute", _FIRST_MINUTE_S
        )


if __name__ == "__main__":
    main(sys.argv[1:] or list(PARTS))
