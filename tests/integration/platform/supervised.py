"""A supervisor with a given table of tiny processes, for the tests: `python supervised.py <directory>`.

Runs the real guard, lock and supervision. The table is `table.json` in the directory: a list of stages,
each a list of {name, code, rank?, once?, essential?}; `code` is Python, run in the directory. A process
is ready when the file `<name>.ready` is there, and empty; while there is something in it, asking fails.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE_S
from workers.supervisor.console import Console
from workers.supervisor.guard import AlreadyRunning, guarded, lock
from workers.supervisor.processes import ProcessSpec
from workers.supervisor.supervision import Supervision


def main() -> int:
    directory = Path(sys.argv[1])
    try:
        lock(directory)
    except AlreadyRunning as error:
        print(error)
        return 1
    return guarded(lambda: _supervise(directory))


def _supervise(directory: Path) -> int:
    rows = json.loads((directory / "table.json").read_text())
    stages = [[_spec(directory, row) for row in stage] for stage in rows]
    console = Console(directory / "logs", tuple(spec.name for stage in stages for spec in stage))
    try:
        return Supervision(stages, console, directory, lambda: console.say("all started")).run()
    finally:
        console.close()


def _spec(directory: Path, row: dict[str, Any]) -> ProcessSpec:
    ready_file = directory / f"{row['name']}.ready"
    return ProcessSpec(
        name=row["name"],
        command=lambda: [sys.executable, "-c", row["code"]],
        ready=lambda _: _is_ready(ready_file),
        once=row.get("once", False),
        essential=row.get("essential", True),
        stop_rank=row.get("rank", 0),
        stop_timeout_s=row.get("stop_timeout_s", PATIENCE_S),
        ready_timeout_s=PATIENCE_S,
    )


def _is_ready(file: Path) -> bool:
    if not file.exists():
        return False
    if text := file.read_text():
        file.with_suffix(".asked").touch()
        raise ValueError(text)
    return True


if __name__ == "__main__":
    sys.exit(main())
