"""Measures how quickly the web answers while a large file is uploaded, and while it is imported."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, perf_counter
from typing import Any

import httpx
import psutil

from tests.benchmarks.harness import log, spread
from tests.running import RunningFogline

ASKED = {"page": "/", "rest": "/api/v1/pipelines"}
EACH_S = 0.05
ALONE_S = 10.0
_TIMEOUT_S = 900.0


class Asker:
    """Asks for a page and for REST in turns, as a person's browser would, and notes how long each took."""

    def __init__(self, fogline: RunningFogline) -> None:
        self._fogline = fogline
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.error: Exception | None = None
        self.took_ms: dict[str, list[float]] = {name: [] for name in ASKED}

    def _run(self) -> None:
        try:
            with self._fogline.client() as client:
                while not self._ended.wait(EACH_S):
                    for name, path in ASKED.items():
                        began = perf_counter()
                        client.get(path).raise_for_status()
                        self.took_ms[name].append((perf_counter() - began) * 1000)
        except httpx.HTTPError as error:
            self.error = error

    def __enter__(self) -> Asker:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@contextmanager
def _memory(pid: int) -> Iterator[Callable[[], int]]:
    """Gives what returns the most memory that the process has had meanwhile, in MB."""
    process, ended, most = psutil.Process(pid), threading.Event(), [0]

    def look() -> None:
        while not ended.wait(0.1):
            most[0] = max(most[0], process.memory_info().rss)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: round(most[0] / 1e6)
    finally:
        ended.set()
        thread.join()


def measure_web(directory: Path, path: Path) -> list[dict[str, Any]]:
    """Returns a row for the web alone, beside the upload of a file, and beside its import."""
    log("starting Fogline without nodes")
    with RunningFogline(directory, FOGLINE_UPLOAD_BYTES_MAX=str(2 * path.stat().st_size)) as fogline:
        web = fogline.pid("web")
        rows = [_beside("nothing", fogline, web, lambda: threading.Event().wait(ALONE_S))]
        stored: dict[str, Any] = {}
        with fogline.client() as client:

            def upload() -> None:
                with path.open("rb") as file:
                    answer = client.post(
                        "/api/v1/files",
                        files={"file": (path.name, file)},
                        data={"confirm": "true"},
                        timeout=_TIMEOUT_S,
                    )
                stored.update(answer.raise_for_status().json())
                _until(client, stored["id"], "asks")

            def imported() -> None:
                client.post(f"/api/v1/files/{stored['id']}/import", json={}).raise_for_status()
                _until(client, stored["id"], "imported")

            rows += [
                _beside("upload", fogline, web, upload),
                _beside("import", fogline, web, imported),
            ]
    return rows


def _until(client: httpx.Client, id: str, state: str) -> None:
    deadline = monotonic() + _TIMEOUT_S
    while (found := client.get(f"/api/v1/files/{id}").raise_for_status().json())["state"] != state:
        if found["error"] or monotonic() > deadline:
            raise RuntimeError(f"the file is {found['state']}: {found['error']}")
        threading.Event().wait(0.2)


def _beside(what: str, fogline: RunningFogline, web: int, act: Callable[[], object]) -> dict[str, Any]:
    with _memory(web) as most, Asker(fogline) as asker:
        began = monotonic()
        act()
        seconds = monotonic() - began
        memory_mb = most()
    if asker.error is not None:
        raise asker.error
    row = {"beside": what, "seconds": round(seconds, 1), "web_memory_mb": memory_mb}
    return {**row, **{f"{name}_ms": spread(took) for name, took in asker.took_ms.items()}}
