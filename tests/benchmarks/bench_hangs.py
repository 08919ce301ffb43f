"""How long it takes until people are told that a connector's system hangs: at most 10 s are wanted.

    make bench-hangs        QUICK=1 make bench-hangs

The server of each kind is stopped (SIGSTOP) while the connector is connected, with rows to deliver or
without, ROUNDS times. `connector_s`: until the connector says that it fails. `told_s_max`: the longest, with
what its node then needs at most until its report goes out. The node looks each LOOK_S, waits FAILING_MS for a
fault that passes, and reports with its next heartbeat.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import plotly.graph_objects as go

from tests.benchmarks.harness import QUICK, log, machine, spread, write_results
from tests.hangs import KINDS, told_s
from workers.node.connectors import FAILING_MS, LOOK_S
from workers.node.identity import Identity

ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
NODE_S = LOOK_S + FAILING_MS / 1000 + Identity.heartbeat_s
WITHIN_S = 10.0


def main() -> None:
    settings = {"machine": machine(), "rounds": ROUNDS, "node_s": NODE_S, "within_s": WITHIN_S}
    rows = []
    for kind in KINDS:
        took_s = []
        for _ in range(ROUNDS):
            with tempfile.TemporaryDirectory() as directory:
                took_s.append(told_s(kind, Path(directory)))
        row = {"connector": kind, "connector_s": spread(took_s), "told_s_max": round(max(took_s) + NODE_S, 1)}
        log(str(row))
        rows.append(row)
    figure = go.Figure(go.Bar(x=[row["connector"] for row in rows], y=[row["told_s_max"] for row in rows]))
    figure.update_layout(title="Seconds until people are told that a system hangs, the longest of all rounds")
    write_results("hangs", settings, rows, figure)
    late = [row["connector"] for row in rows if row["told_s_max"] > WITHIN_S]
    if late:
        sys.exit(f"FAILED: told of later than within {WITHIN_S:g} s: {', '.join(map(str, late))}")


if __name__ == "__main__":
    main()
