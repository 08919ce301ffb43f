"""The import of a large CSV file, beside DuckDB alone.

    make bench-import                QUICK=1 make bench-import

Two files, of GIGABYTES each: one of 6 columns, one of 101. The first column is a time, the others are numbers
with three decimals. They take turns: Fogline's import, as the process that control runs, and DuckDB's
`read_csv` with the types given, to Parquet, with as many threads. The log says for each its seconds, its
seconds of CPU, and the most memory that the process had. Both tables must have the same rows.

Then the first file goes through a Fogline without nodes. The log says how quickly the web answers alone,
beside the upload and beside the import, and the most memory that the web's process had.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import monotonic
from typing import Any

import duckdb
import numpy as np
import plotly.graph_objects as go

from tests.benchmarks.harness import QUICK, ROOT, log, machine, write_results
from tests.benchmarks.web_beside import measure_web
from webapp.imports.convert_sql import THREADS

GIGABYTES = float(os.environ.get("GIGABYTES", "0.1" if QUICK else "1"))
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
COLUMNS = (5, 100)  # of numbers, beside the time
RATIO_MAX, MEMORY_MB_MAX = 1.5, 500
_DUCKDB = """
import sys, duckdb
path, out, columns, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
types = ", ".join(["time: 'TIMESTAMP'", *(f"v{n}: 'DOUBLE'" for n in range(columns))])
duckdb.connect(config={"threads": threads}).execute(
    f"COPY (FROM read_csv('{path}', columns = {{{types}}}, auto_detect = false, header = true, delim = ',',"
    f" quote = '\\"', escape = '\\"')) TO '{out}' (FORMAT parquet)"
)
"""


def write_file(path: Path, columns: int) -> int:
    """Writes the file and returns its rows."""
    random, rows, count = np.random.default_rng(columns), 0, 200_000 // columns
    start = np.datetime64("2024-01-01T00:00:00.000")
    with path.open("wb") as file:
        file.write((",".join(["time", *(f"v{n}" for n in range(columns))]) + "\n").encode())
        while file.tell() < GIGABYTES * 1e9:
            values = np.round(random.normal(20, 5, (count, columns)), 3).astype(str)
            times = (start + np.arange(rows, rows + count) * np.timedelta64(100, "ms")).astype(str)
            lines = (
                f"{at.replace('T', ' ')},{','.join(cells)}\n" for at, cells in zip(times, values, strict=True)
            )
            file.write("".join(lines).encode())
            rows += count
    return rows


def reading(columns: int) -> str:
    named = [{"source": 0, "name": "time", "type": "timestamp"}]
    named += [{"source": n + 1, "name": f"v{n}", "type": "number"} for n in range(columns)]
    time = {"columns": [0], "format": "iso"}
    return json.dumps({"header_line": 1, "first_line": 2, "columns": named, "time": time})


def measured(command: list[str], given: str) -> dict[str, float]:
    """Runs a process to its end and returns what it took."""
    begun_s = monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdin is not None
    process.stdin.write(given.encode() + b"\n")
    process.stdin.flush()
    _, status, used = os.wait4(process.pid, 0)
    seconds = monotonic() - begun_s
    process.stdin.close()
    assert status == 0, f"{command[:3]} ended with {status}"
    return {
        "seconds": round(seconds, 2),
        "cpu_s": round(used.ru_utime + used.ru_stime, 2),
        "memory_mb": round(used.ru_maxrss / 1024),
    }


def compare(ours: Path, theirs: Path, columns: int, rows: int) -> None:
    names = ["time", *(f"v{n}" for n in range(columns))]
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    sums = ", ".join(
        ["count(*)", "sum(epoch_us(time))", *(f"sum(hash({name}) % 1000003)" for name in names[1:])]
    )
    found = [
        connection.execute(f"SELECT {sums} FROM read_parquet('{path}')").fetchone() for path in (ours, theirs)
    ]
    assert found[0] == found[1], f"{columns} columns: the tables differ"
    assert found[0] is not None
    assert found[0][0] == rows


def main() -> int:
    found: list[dict[str, Any]] = []
    web: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="fogline-bench-") as name:
        directory = Path(name)
        for columns in COLUMNS:
            path = directory / f"{columns}.csv"
            rows = write_file(path, columns)
            log(f"{columns + 1} columns, {rows:,} rows, {path.stat().st_size:,} bytes")
            ours, theirs = directory / "ours", directory / "theirs"
            for number in range(ROUNDS):
                convert = [
                    sys.executable,
                    "-m",
                    "webapp.imports",
                    "convert",
                    "--path",
                    str(path),
                    "--out",
                    str(ours),
                ]
                alone = [sys.executable, "-c", _DUCKDB, str(path), str(theirs), str(columns), str(THREADS)]
                for who, command in (("fogline", convert), ("duckdb", alone)):
                    took = measured(command, reading(columns))
                    found.append({"columns": columns + 1, "round": number, "who": who, **took})
                    log("  ".join(f"{key} {value}" for key, value in found[-1].items()))
            compare(ours, theirs, columns, rows)
            if columns == COLUMNS[0]:
                web = measure_web(directory / "data", path)
            path.unlink()
    for each in web:
        log(str(each))
    summary = [summed_up(found, columns + 1) for columns in COLUMNS]
    for each in summary:
        log(", ".join(f"{key} {value}" for key, value in each.items()))
    bars = [
        go.Bar(
            name=who,
            x=[f"{each['columns']} columns" for each in summary],
            y=[each[f"{who}_s"] for each in summary],
        )
        for who in ("fogline", "duckdb")
    ]
    settings = {"machine": machine(), "gigabytes": GIGABYTES, "threads": THREADS, "summary": summary}
    write_results("import", settings, [*found, *web], go.Figure(bars))
    return 0


def summed_up(rows: list[dict[str, Any]], columns: int) -> dict[str, Any]:
    """Medians, the ratio of the seconds of each round, and whether the aims are met."""
    mine = [row for row in rows if row["columns"] == columns and row["who"] == "fogline"]
    theirs = [row for row in rows if row["columns"] == columns and row["who"] == "duckdb"]
    ratio = median(a["seconds"] / b["seconds"] for a, b in zip(mine, theirs, strict=True))
    cpu = median(a["cpu_s"] / b["cpu_s"] for a, b in zip(mine, theirs, strict=True))
    memory = max(row["memory_mb"] for row in mine)
    return {
        "columns": columns,
        "fogline_s": median(row["seconds"] for row in mine),
        "duckdb_s": median(row["seconds"] for row in theirs),
        "ratio": round(ratio, 2),
        "cpu_ratio": round(cpu, 2),
        "fogline_memory_mb": memory,
        "duckdb_memory_mb": max(row["memory_mb"] for row in theirs),
        "aims_met": ratio <= RATIO_MAX and memory < MEMORY_MB_MAX,
    }


if __name__ == "__main__":
    sys.exit(main())
