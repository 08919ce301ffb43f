"""Measures how soon the editor shows the preview of an element, for each element of each template.

    make bench-preview            QUICK=1 make bench-preview

A whole Fogline with one node, on which nothing runs. Each preview is asked for over REST, as the editor asks,
and again as long as the node says that it is on its way. The first preview of all has to wait until the node
has started what makes previews. A browser then draws the rows; that is not in the figures.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx
import plotly.graph_objects as go

from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.integration.pipelines.driving import API
from tests.integration.pipelines.template_runs import template
from tests.running import RunningFogline
from tests.waiting import wait_until

ROUNDS = 2 if QUICK else 10
AIM_MS = 2_000
RATE = 10.0
ON_ITS_WAY = ("busy", "fetching", "starting")
ASK_AGAIN_S = 0.1


def previewed_ms(client: httpx.Client, pipeline: str, element: str) -> tuple[float, str | None]:
    """Returns how long it took until the rows were there, and why there are none or not all."""
    began = perf_counter()
    while True:
        answer = client.post(f"{API}/pipelines/{pipeline}/elements/{element}/preview", json={})
        trouble = answer.raise_for_status().json()["trouble"]
        kind = trouble["kind"] if trouble else None
        if kind not in ON_ITS_WAY:
            return (perf_counter() - began) * 1000, kind
        sleep(ASK_AGAIN_S)


def measure(client: httpx.Client, name: str) -> list[dict[str, Any]]:
    """Previews each element of a template, `ROUNDS` times after the first time."""
    document = template(client, name, RATE)
    client.post(f"{API}/pipelines", json={"name": name, "document": document}).raise_for_status()
    rows = []
    for element in (each["id"] for each in document["spec"]["elements"]):
        times = [previewed_ms(client, name, element) for _ in range(1 + ROUNDS)]
        (first_ms, trouble), later = times[0], [ms for ms, _ in times[1:]]
        row = {"template": name, "element": element, "n": ROUNDS, "trouble": trouble}
        rows.append({**row, "first_ms": round(first_ms, 1), "ms": spread(later)})
        log(str(rows[-1]))
    return rows


def main() -> int:
    settings = {"machine": machine(), "rounds": ROUNDS, "aim_ms": AIM_MS}
    with (
        tempfile.TemporaryDirectory(prefix="fogline-bench-") as data,
        RunningFogline(Path(data), nodes=("edge-a",)) as fogline,
        fogline.client() as client,
    ):
        wait_until(lambda: client.get(f"{API}/nodes").json()[0]["ready"], "the node to be ready", 300)
        names = [each["name"] for each in client.get(f"{API}/templates").raise_for_status().json()]
        rows = [row for name in names for row in measure(client, name)]
    late = [row for row in rows if max(row["first_ms"], row["ms"]["max"]) > AIM_MS]
    log(f"{len(late)} of {len(rows)} took more than {AIM_MS} ms: {[row['element'] for row in late]}")
    bars = go.Bar(
        x=[f"{row['template']}: {row['element']}" for row in rows], y=[row["ms"]["p50"] for row in rows]
    )
    figure = go.Figure(bars)
    figure.update_layout(title="A preview over REST, ms (median)")
    write_results("preview", settings, rows, figure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
