"""Measures how fast the editor reacts with 500 elements: opening, a click, panning, dragging to another lane.
It uses a real Chromium and the real web.

    make bench-editor            QUICK=1 make bench-editor

The document: 100 lines of five elements each (generator -> filter -> derive -> count window -> CSV file),
five beside each other, all valid. Nothing is deployed, so no node is needed. All times are taken in the page:
a click's from the browser's own time stamp of it to the frame after the card is marked and the inspector
shows it; panning's between the frames (requestAnimationFrame) while the mouse drags the canvas.

For the lanes, what the web says of the live system is changed on its way into the page: each line of five
runs on one of 50 nodes, in five sites. The mouse drags a card up and down over the lanes.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import httpx
import plotly.graph_objects as go
from playwright.sync_api import Browser, Page, WebSocketRoute, sync_playwright

from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.browser.dashboard import Dashboard
from tests.running import RunningFogline

NODES = 50
ELEMENTS = int(os.environ.get("ELEMENTS", "500"))
ROUNDS = 2 if QUICK else 10
CLICKS = 10 if QUICK else 60
PAN_STEPS = 60 if QUICK else 300
NAME = "many"
WIDTH, HEIGHT = 1440, 900

# In the page: when the first cards were drawn, and the ends of tasks that kept the page from answering.
_WATCH = """
window.bench = { drawn: null, busy: [], frames: [], click: null };
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) window.bench.busy.push([task.startTime, task.duration]);
}).observe({ type: "longtask", buffered: true });
const afterNextFrame = (then) => requestAnimationFrame(() => {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = then;
  port2.postMessage(0);
});
const look = () => {
  if (!document.querySelector(".react-flow__node .el-card")) requestAnimationFrame(look);
  else afterNextFrame(() => (window.bench.drawn = performance.now()));
};
requestAnimationFrame(look);
addEventListener("pointerdown", (event) => {
  const began = event.timeStamp;
  const card = event.target.closest(".react-flow__node");
  if (!card) return;
  window.bench.click = null;
  const shows = () => card.querySelector(".el-card--selected")
    && document.querySelector(".panel--inspector [data-path=id] input")?.value === card.dataset.id;
  const wait = () => shows()
    ? afterNextFrame(() => (window.bench.click = performance.now() - began))
    : requestAnimationFrame(wait);
  wait();
}, true);
"""
_RECORD_FRAMES = """
() => {
  window.bench.frames = [];
  window.bench.on = true;
  let last = null;
  const frame = (now) => {
    if (last !== null) window.bench.frames.push(now - last);
    last = now;
    if (window.bench.on) requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}
"""
_IN_VIEW = """
(() => {
  const room = document.querySelector(".canvas").getBoundingClientRect();
  const tools = document.querySelector(".canvas-tools").getBoundingClientRect();
  const map = document.querySelector(".react-flow__minimap")?.getBoundingClientRect();
  const apart = (a, b) => a.right < b.left || a.left > b.right || a.bottom < b.top || a.top > b.bottom;
  const cards = [...document.querySelectorAll(".react-flow__node-card")];
  const boxes = cards.map((card) => card.getBoundingClientRect());
  const whole = boxes.filter((box) => box.width > 0 && box.left >= room.left && box.right <= room.right
    && box.top >= room.top && box.bottom <= room.bottom);
  const bare = whole.filter((box) => apart(box, tools) && (!map || apart(box, map)));
  return { count: whole.length, middles: bare.map((box) => [box.x + box.width / 2, box.y + box.height / 2]) };
})()
"""


def document(count: int) -> dict[str, Any]:
    """Lines of five, in five columns."""
    elements: list[dict[str, Any]] = []
    average = {"function": "avg", "column": "double", "as": "average"}
    for line in range(count // 5):
        row: list[tuple[str, str, dict[str, Any]]] = [
            ("numbers", "generator", {"rate": 10}),
            ("positive", "filter", {"condition": "value > 0"}),
            ("double", "derive", {"columns": [{"name": "double", "expression": "value * 2"}]}),
            ("average", "count-window-aggregate", {"size": 10, "aggregates": [average]}),
            ("file", "csv-sink", {"file": f"averages-{line}.csv"}),
        ]
        for place, (name, type_, params) in enumerate(row):
            before = {"inputs": {"in": f"{row[place - 1][0]}-{line}"}} if place else {}
            ui = {"x": place * 320 + line % 5 * 1760, "y": line // 5 * 128}
            elements.append({"id": f"{name}-{line}", "type": type_, "params": params, "ui": ui, **before})
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": NAME},
        "spec": {"elements": elements},
    }


def until(page: Page, expression: str) -> None:
    """Waits in the page: the content security policy of ours lets nobody pass it code to poll."""
    page.evaluate(
        "new Promise((done) => { const look = () => "
        f"({expression}) ? done() : requestAnimationFrame(look); look(); }})"
    )


def opened(page: Page) -> tuple[float, float]:
    """Opens the editor: ms until the first cards are drawn, and until the page then answers for good."""
    page.goto(f"/pipelines/{NAME}")
    until(page, "window.bench.drawn !== null")
    drawn = float(page.evaluate("window.bench.drawn"))
    # validation's answer, the last thing that opening brings
    page.get_by_role("region", name="Problems").get_by_text("No problems").wait_for()
    until(page, "performance.now() - Math.max(...window.bench.busy.map(([at, ms]) => at + ms), 0) > 1000")
    busy = page.evaluate("window.bench.busy.map(([at, ms]) => at + ms)")
    return drawn, max([drawn, *busy])


def measure_opening(browser: Browser, fogline: RunningFogline) -> list[dict[str, Any]]:
    """Cold: nothing in the browser's cache but what signing in brought. Warm: the same window again."""
    times: dict[str, list[tuple[float, float]]] = {"opened, cold": [], "opened, warm": []}
    for _ in range(ROUNDS):
        page = signed_in(browser, fogline)
        for cell in times.values():
            cell.append(opened(page))
        page.context.close()
    return [
        {
            "what": what,
            "n": len(pairs),
            "drawn_ms": spread(drawn for drawn, _ in pairs),
            "quiet_ms": spread(quiet for _, quiet in pairs),
        }
        for what, pairs in times.items()
    ]


def measure_clicks(page: Page, what: str) -> dict[str, Any]:
    """On one card after another, of those that are wholly in view."""
    values: list[float] = []
    for turn in range(CLICKS):
        view = page.evaluate(_IN_VIEW)
        x, y = view["middles"][turn * 7 % len(view["middles"])]
        page.mouse.click(x, y)
        until(page, "window.bench.click !== null")
        values.append(float(page.evaluate("window.bench.click")))
    return {"what": what, "n": len(values), "in_view": view["count"], "click_ms": spread(values)}


def measure_panning(page: Page, what: str) -> dict[str, Any]:
    """The mouse drags the canvas to and fro, by its empty left and right edges."""
    box = page.locator(".canvas").bounding_box()
    assert box is not None
    x, y = box["x"] + 12, box["y"] + box["height"] / 2
    shown = page.evaluate(_IN_VIEW)["count"]
    page.mouse.move(x, y)
    page.mouse.down()
    page.evaluate(_RECORD_FRAMES)
    for step in range(PAN_STEPS):
        away = step % 100
        page.mouse.move(x + 3 * min(away, 100 - away), y + 2 * min(away, 100 - away))
    frames = page.evaluate("(window.bench.on = false, window.bench.frames)")
    page.mouse.up()
    ranked = sorted(frames)
    p95 = round(ranked[int(0.95 * (len(ranked) - 1))], 3)
    return {"what": what, "n": len(frames), "in_view": shown, "frame_ms": {**spread(frames), "p95": p95}}


class FiftyNodes:
    """The live connection of a page, in which all elements run, on 50 nodes."""

    def __init__(self, page: Page) -> None:
        page.route_web_socket(re.compile("/ws/live$"), self._route)

    def _route(self, socket: WebSocketRoute) -> None:
        server = socket.connect_to_server()
        server.on_message(lambda text: socket.send(self._changed(str(text))))

    def _changed(self, text: str) -> str:
        message = json.loads(text)
        data = message.get("data")
        if message["type"] == "snapshot":
            data["nodes"] = [_node(number) for number in range(NODES)]
            data["elements"][NAME] = [_running(each) for each in data["elements"].get(NAME, [])]
        elif message["type"] == "nodes":
            message["data"] = [_node(number) for number in range(NODES)]
        elif message["type"] == "elements":
            message["data"] = [_running(each) for each in data]
        return json.dumps(message)


def _running(element: dict[str, Any]) -> dict[str, Any]:
    line = int(element["id"].rpartition("-")[2])
    may = {"allowed": True, "reason": None, "note": None}
    return {
        **element,
        "status": "running",
        "node": f"edge-{line % NODES}",
        "rows_in_per_s": 10.0,
        "rows_out_per_s": 10.0,
        "actions": {"migrate": may},
    }


def _node(number: int) -> dict[str, Any]:
    load = {"cpu_ratio": number / NODES, "memory_ratio": 0.4}
    unset = ("draining_since", "drain_blocked", "leaving_until", "maintenance_until", "silent_at", "drain")
    return {
        **dict.fromkeys(unset),
        "name": f"edge-{number}",
        "site": f"hall-{number % 5}",
        **{"up": True, "heard": True, "ready": True, "cordoned": False, "draining": False},
        **{"url": "", "version": "", "version_wanted": "", "cores": 4, "alerts": [], "elements": []},
        **{"enrolled_at": "2026-01-01T00:00:00Z", "last_seen_at": "2026-01-01T00:00:00Z", "load": load},
        "remove": {"allowed": False, "reason": "it is up", "note": None},
    }


def measure_dragging(page: Page, what: str) -> dict[str, Any]:
    """The mouse drags a card over the lanes, up and down; then it is given up."""
    view = page.evaluate(_IN_VIEW)
    x, y = min(view["middles"], key=lambda at: abs(at[1] - HEIGHT / 2))
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 8, y + 8, steps=4)
    until(page, "document.querySelector('.hanging') !== null")
    page.evaluate(_RECORD_FRAMES)
    for step in range(PAN_STEPS):
        away = step % 100
        page.mouse.move(x, y - 120 + 5 * min(away, 100 - away))
    frames = page.evaluate("(window.bench.on = false, window.bench.frames)")
    page.mouse.up()
    page.keyboard.press("Escape")
    ranked = sorted(frames)
    p95 = round(ranked[int(0.95 * (len(ranked) - 1))], 3)
    return {
        "what": what,
        "n": len(frames),
        "in_view": view["count"],
        "frame_ms": {**spread(frames), "p95": p95},
    }


def measure_lanes(browser: Browser, fogline: RunningFogline) -> list[dict[str, Any]]:
    page = signed_in(browser, fogline)
    FiftyNodes(page)
    page.goto(f"/pipelines/{NAME}?mode=live&arranged=lanes")
    until(page, "document.querySelectorAll('.react-flow__node-card').length > 0")
    until(page, "document.querySelectorAll('.lane-box').length > 0")
    page.wait_for_timeout(2_000)  # what opening brings is another row's
    rows = [measure_dragging(page, "dragged in lanes, near")]
    page.get_by_role("button", name="Zoom to fit").click()
    until(page, f"({_IN_VIEW}).count === {ELEMENTS}")
    rows.append(measure_dragging(page, "dragged in lanes, all in view"))
    page.context.close()
    return rows


def measure_server(client: httpx.Client) -> dict[str, Any]:
    values: dict[str, list[float]] = {"get_ms": [], "validate_ms": []}
    for _ in range(ROUNDS):
        for name, ask in (
            ("get_ms", lambda: client.get(f"/api/v1/pipelines/{NAME}")),
            ("validate_ms", lambda: client.post(f"/api/v1/pipelines/{NAME}/validate")),
        ):
            began = perf_counter()
            ask().raise_for_status()
            values[name].append((perf_counter() - began) * 1000)
    return {"what": "asked the server", "n": ROUNDS, **{name: spread(each) for name, each in values.items()}}


def signed_in(browser: Browser, fogline: RunningFogline) -> Page:
    context = browser.new_context(base_url=fogline.url, viewport={"width": WIDTH, "height": HEIGHT})
    page = context.new_page()
    page.set_default_timeout(60_000)
    Dashboard(page).sign_in(*fogline.login())
    page.add_init_script(_WATCH)
    return page


def measure(browser: Browser, fogline: RunningFogline) -> list[dict[str, Any]]:
    with fogline.client() as client:
        client.post(
            "/api/v1/pipelines", json={"name": NAME, "document": document(ELEMENTS)}
        ).raise_for_status()
        rows = [measure_server(client)]
    rows += measure_opening(browser, fogline)
    page = signed_in(browser, fogline)
    opened(page)
    rows += [measure_clicks(page, "clicked, near"), measure_panning(page, "panned, near")]
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Zoom to fit").click()
    until(page, f"({_IN_VIEW}).count === {ELEMENTS}")
    rows += [measure_panning(page, "panned, all in view"), measure_clicks(page, "clicked, all in view")]
    page.context.close()
    return [*rows, *measure_lanes(browser, fogline)]


def figure_of(rows: list[dict[str, Any]]) -> go.Figure:
    bars = [
        (f"{row['what']}: {name}", value.get("p95", value["p50"]))
        for row in rows
        for name, value in row.items()
        if isinstance(value, dict)
    ]
    figure = go.Figure(go.Bar(x=[value for _, value in bars], y=[name for name, _ in bars], orientation="h"))
    figure.update_layout(title=f"The editor with {ELEMENTS} elements, ms (median; frames: p95)")
    return figure


def main() -> None:
    program = shutil.which("chromium")
    if program is None:
        sys.exit("Chromium is missing: make bench-editor installs it")
    settings = {"machine": machine(), "elements": ELEMENTS, "rounds": ROUNDS, "window": [WIDTH, HEIGHT]}
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as directory:
        log("starting Fogline without nodes")
        with RunningFogline(Path(directory) / "data") as fogline, sync_playwright() as playwright:
            # --no-sandbox: Chromium refuses to run as root, as build machines do, with its sandbox
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            rows = measure(browser, fogline)
            browser.close()
    for row in rows:
        log(str(row))
    write_results("editor", settings, rows, figure_of(rows))


if __name__ == "__main__":
    main()
