"""Lanes, a wall, the trace of a row and a preview, in light and dark, on screens of all sizes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.dashboard import SLOW_MS, Dashboard
from tests.pictures.demo import ELEMENT, PIPELINE, THEMES, Open, flows, settled
from tests.running import RunningFogline

WALL = "Machine hall"
# The first is for docs/images, the others are looked at before a release.
_USUAL = (1600, 1000)
_SIZES = {"wide": (1920, 1080), "narrow": (900, 800), "phone": (390, 844)}
_TRIES = 5
_AVERAGES = [f"mf0{phase}_average" for phase in (1, 2, 3)]


def pages(open_window: Open, fogline: RunningFogline, images: Path, looks: Path) -> None:
    """`<page>-<theme>.png` into `images`, and `<page>-<theme>-<size>.png` into `looks`."""
    looks.mkdir(parents=True, exist_ok=True)
    wall = make_wall(fogline)
    for theme in THEMES:
        for size, (width, height) in {"": _USUAL, **_SIZES}.items():
            dashboard = open_window(color_scheme=theme, viewport={"width": width, "height": height})
            for name, show in (("lanes", lanes), ("trace", trace), ("preview", preview)):
                show(dashboard)
                _shoot(dashboard.page, name, theme, size, images, looks)
            dashboard.page.goto(f"/walls/{wall}")
            expect(dashboard.page.locator(".wall-tile .main-svg").first).to_be_visible()
            settled(dashboard.page)
            _shoot(dashboard.page, "wall", theme, size, images, looks)
            dashboard.page.context.close()


def _shoot(page: Page, name: str, theme: str, size: str, images: Path, looks: Path) -> None:
    page.mouse.move(2, 2)
    page.screenshot(path=looks / f"{name}-{theme}-{size}.png" if size else images / f"{name}-{theme}.png")


def make_wall(fogline: RunningFogline) -> str:
    """Makes a wall of the demo's figures, and returns its id."""

    def stream(column: str, element: str = ELEMENT) -> dict[str, Any]:
        return {"pipeline": PIPELINE, "element": element, "column": column}

    def place(id: str, kind: str, x: int, y: int, w: int, h: int, **more: Any) -> dict[str, Any]:
        return {"id": id, "kind": kind, "x": x, "y": y, "w": w, "h": h, **more}

    phases = [
        place(
            f"figure-{phase}",
            "figure",
            8 * (phase - 1),
            0,
            8,
            4,
            title=f"Phase {phase}",
            series=stream(column),
            unit="W",
            decimals=0,
            high=12_600,
        )
        for phase, column in enumerate(_AVERAGES, 1)
    ]
    tiles = [
        *phases,
        place(
            "chart-1",
            "chart",
            0,
            4,
            15,
            8,
            title="Power of the phases",
            range_s=300,
            series=[stream(column) for column in _AVERAGES],
        ),
        place(
            "table-1",
            "table",
            15,
            4,
            9,
            8,
            title="Seconds",
            pipeline=PIPELINE,
            element=ELEMENT,
            columns=_AVERAGES[:2],
            rows=12,
        ),
        place("picture-1", "picture", 0, 12, 24, 6, pipeline=PIPELINE),
    ]
    with fogline.client() as client:
        made = client.post("/api/v1/walls", json={"title": WALL}).raise_for_status().json()
        client.put(
            f"/api/v1/walls/{made['id']}",
            json={"title": WALL, "tiles": tiles},
            headers={"If-Match": f'"{made["revision"]}"'},
        ).raise_for_status()
    return str(made["id"])


def lanes(dashboard: Dashboard) -> None:
    dashboard.page.goto(f"/pipelines/{PIPELINE}?mode=live&arranged=lanes")
    flows(dashboard)
    settled(dashboard.page)


def trace(dashboard: Dashboard) -> None:
    """Leads from a second of the power to its readings."""
    page, panel = dashboard.page, dashboard.live_panel
    page.goto(f"/pipelines/{PIPELINE}?mode=live&element={ELEMENT}")
    panel.get_by_role("tab", name="Records").click()
    panel.get_by_role("button", name="Hold").click()
    panel.get_by_role("button", name=re.compile("Where did the row of")).nth(3).click()
    dialog = page.get_by_role("dialog", name="Where this row came from")
    expect(dialog.get_by_role("region", name="Rows of Machine readings")).to_be_visible()


def preview(dashboard: Dashboard) -> None:
    page = dashboard.page
    page.goto(f"/pipelines/{PIPELINE}?mode=edit&element={ELEMENT}")
    page.get_by_role("tab", name="Preview").click()
    pin = page.get_by_role("button", name="Pin these rows")
    stopped = page.get_by_text("so the preview was stopped")
    # a node's first preview has to load what it computes with, and a busy one may not come to its end
    for _ in range(_TRIES):
        expect(pin.or_(stopped)).to_be_visible(timeout=SLOW_MS)
        if pin.is_visible():
            return
        page.get_by_role("button", name="Refresh").click()
        expect(stopped).to_have_count(0)
    expect(pin).to_be_visible()
