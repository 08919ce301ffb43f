"""The ECG of a wearable whose user walks: the part that runs on the wearable follows from site to site.

    make bench-walk

The second case of the migration thesis (Gomm, KIT 2020). The template ecg-alarm runs on three nodes, a site
each; a policy of the kind `follow` moves what reads the wearable to where its user is told to be. The user
goes to and fro between two sites until the recording ends, and stays 75 s at each: a policy leaves a node
alone for 60 s after a move. It says for each walk how long it took until the element ran there, how much of
that the policy took to decide, and the pause. At the end it compares each row with the oracle.

RATE: rows per second of the recording, which has 43,200; it was made at 360.
"""

from __future__ import annotations

import os
import random
import shutil
import sys
import tempfile
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
import plotly.graph_objects as go

from tests.benchmarks.harness import QUICK, log, machine, write_results
from tests.integration.pipelines.driving import API, element
from tests.integration.pipelines.template_runs import Run, template
from tests.running import RunningFogline
from tests.waiting import wait_until

RATE = float(os.environ.get("RATE", "180" if QUICK else "72"))
SITES = ("edge-a", "edge-b", "cloud")
WAYS = "edge-a,edge-b,cloud\n0,20,30\n20,0,30\n30,30,0"
NAME, WORN = "ecg-alarm", "readings"
STAY_S = 75.0
PATIENCE_S = 300.0


def main() -> int:
    rows: list[dict[str, Any]] = []
    directory = Path(tempfile.mkdtemp(prefix="fogline-walk-"))
    try:
        with (
            RunningFogline(directory / "fogline", nodes=SITES, FOGLINE_TRIM_S="0") as fogline,
            fogline.client() as client,
        ):
            run = deployed(client)
            walk(client, run, rows)
            run.wait_until_ended()
            run.compare(fogline.bootstrap)
            log(f"{len(rows)} walks; each row is the oracle's")
    except BaseException:
        print(f"logs are left in {directory}", file=sys.stderr)
        raise
    shutil.rmtree(directory, ignore_errors=True)
    bars = [go.Bar(name=name, y=[row[name] for row in rows]) for name in ("followed_s", "decided_s")]
    write_results("walk", {"machine": machine(), "rate": RATE}, rows, go.Figure(bars))
    return 0


def deployed(client: httpx.Client) -> Run:
    """On a node each, with the policy."""
    wait_until(lambda: all(node["ready"] for node in nodes(client)), "the nodes to be ready", PATIENCE_S)
    client.put(f"{API}/map/latencies", json={"matrix": WAYS}).raise_for_status()
    document = template(client, NAME, RATE)
    group_of = {id: group["id"] for group in document["spec"]["groups"] for id in group["elements"]}
    places = {"wearable": "edge-a", "gateway": "edge-b", "cloud": "cloud"}
    for each in document["spec"]["elements"]:
        if each["id"] in group_of:
            each["node"] = places[group_of[each["id"]]]
    run = Run(client, document, random.Random(NAME))
    run.deploy()
    rule = {"kind": "follow", "pipeline": NAME, "element": WORN, "along": False, "for_s": 0}
    policy = {"name": "with its user", "rule": rule, "mode": "automatic", "moves_per_hour": 100}
    client.post(f"{API}/policies", json=policy).raise_for_status()
    return run


def nodes(client: httpx.Client) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = client.get(f"{API}/nodes").raise_for_status().json()
    return found


def walk(client: httpx.Client, run: Run, rows: list[dict[str, Any]]) -> None:
    """Until the recording is over."""
    site = "edge-a"
    while not element(client, NAME, WORN)["ended"]:
        site = {"edge-a": "edge-b", "edge-b": "edge-a"}[site]
        path = f"{API}/pipelines/{NAME}/elements/{WORN}/place"
        client.put(path, json={"site": site}).raise_for_status()
        told_s = monotonic()
        found = followed(client, run, site)
        if found is None:
            return  # it ended before
        row = {"to": site, "followed_s": round(monotonic() - told_s, 1), **found}
        log("  ".join(f"{name} {value}" for name, value in row.items()))
        rows.append(row)
        while monotonic() - told_s < STAY_S and not element(client, NAME, WORN)["ended"]:
            sleep(1.0)


def followed(client: httpx.Client, run: Run, site: str) -> dict[str, Any] | None:
    """Returns what is known about the move, or None if nothing moved."""
    told_s, moving_s = monotonic(), None
    while True:
        now = element(client, NAME, WORN)
        if moving_s is None and now["handover"] is not None:
            moving_s = monotonic()
        if now["node"] == site and now["handover"] is None:
            break
        if now["ended"]:
            return None
        if monotonic() - told_s > PATIENCE_S:
            [said] = client.get(f"{API}/policies").json()
            raise AssertionError(f"it does not follow to {site}: {said}")
        sleep(0.2)
    [latest] = client.get(f"{API}/handovers", params={"limit": 1}).raise_for_status().json()
    pause = latest["pause"]
    return {"decided_s": round((moving_s or told_s) - told_s, 1), "pause_ms": pause and pause["ms"]}


if __name__ == "__main__":
    sys.exit(main())
