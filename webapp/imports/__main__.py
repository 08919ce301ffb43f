"""The import as a process of its own, which the control side starts, watches and ends.

    python -m webapp.imports look --path P --name N
    python -m webapp.imports convert --path P --out O

It writes JSON lines to its standard output: `progress`, then `result` or `error` (what, where, next).
The first line of its standard input is JSON: for `convert` the reading. When its standard input ends, nobody
waits for it any more and it ends itself.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import threading
import traceback
from collections.abc import Callable
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from time import monotonic
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.operators.recording import facts_of
from webapp.imports.convert import convert
from webapp.imports.faults import Cancelled, ImportFault
from webapp.imports.reading import Reading

REFUSED, CRASHED, ORPHANED = 1, 2, 3
_TOLD_EVERY_S = 0.25
_ADDRESSES_BEYOND_MEMORY_MB = 4096
"""The limit is on the address space, not on memory. Mapped files and threads take addresses that they never
use."""


def main(arguments: list[str], given: Callable[[], bytes], say: Callable[[dict[str, Any]], None]) -> int:
    """Runs one command and returns the exit code. `given` returns the first line of the input, and `say`
    takes each message."""
    parser = argparse.ArgumentParser(prog="webapp.imports")
    parser.add_argument("command", choices=["look", "convert"])
    parser.add_argument("--path", type=Path, required=True)
    parser.add_argument("--name", default="")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--memory-mb", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0.0)
    options = parser.parse_args(arguments)
    if options.memory_mb:
        addresses = (options.memory_mb + _ADDRESSES_BEYOND_MEMORY_MB) << 20
        resource.setrlimit(resource.RLIMIT_AS, (addresses, addresses))
    deadline = monotonic() + options.seconds if options.seconds else None
    try:
        first = given()
        result = _look(options) if options.command == "look" else _convert(options, first, deadline, say)
    except ImportFault as fault:
        say({"error": {"what": fault.what, "where": fault.where, "next": fault.next}})
        return REFUSED
    except Cancelled:
        say({"error": _error(f"The import took longer than {options.seconds:,.0f} s.", "Split the file.")})
        return REFUSED
    except MemoryError:
        what = f"The import needs more than {options.memory_mb:,} MB of memory."
        say({"error": _error(what, "Split the file, or leave out columns.")})
        return REFUSED
    except OSError as error:
        say(
            {
                "error": _error(
                    f"The import could not read or write its files: {error.strerror}.", "Try again."
                )
            }
        )
        return REFUSED
    say({"result": result})
    return 0


def _error(what: str, next: str) -> dict[str, Any]:
    return {"what": what, "where": None, "next": next}


def _look(options: argparse.Namespace) -> dict[str, Any]:
    # Import this module late, because its own imports take long.
    detect: Any = import_module("webapp.imports.detect")
    found = detect.look(options.path, options.name)
    head = found.head if isinstance(found.head, dict) else found.head.model_dump(mode="json")
    return {"detection": found.detection.model_dump(mode="json"), "head": head}


def _convert(
    options: argparse.Namespace, first: bytes, deadline: float | None, say: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    try:
        reading = Reading.model_validate_json(first)
    except ValidationError as error:
        places = "; ".join(
            ".".join(map(str, each["loc"])) + ": " + each["msg"] for each in error.errors()[:3]
        )
        raise ImportFault(f"The reading is not valid: {places}.", None, "Look at the file again.") from error
    last = 0.0

    def told(done: int, total: int, rows: int) -> None:
        nonlocal last
        if monotonic() - last >= _TOLD_EVERY_S:
            last = monotonic()
            say({"progress": {"bytes_done": done, "bytes_total": total, "rows": rows}})

    report = convert(
        options.path, reading, options.out, told, lambda: deadline is not None and monotonic() > deadline
    )
    facts = facts_of(options.out)
    return {"report": report.model_dump(mode="json"), "facts": facts.model_dump(mode="json")}


class _WithoutPandas(MetaPathFinder):
    """Keeps Arrow from importing pandas, because that takes half a second and the import needs nothing of
    pandas."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used here")


def _first_line() -> bytes:
    """Returns the first line of the input. A thread then reads the rest, and ends the process at the input's
    end."""
    line = sys.stdin.buffer.readline()

    def watch() -> None:
        while sys.stdin.buffer.read(4096):
            pass
        os._exit(ORPHANED)

    if line.endswith(b"\n"):
        threading.Thread(target=watch, name="watch", daemon=True).start()
    return line


if __name__ == "__main__":
    sys.meta_path.insert(0, _WithoutPandas())
    _out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # text that a library prints must not mix with the messages
    _code = CRASHED
    try:
        _code = main(
            sys.argv[1:], _first_line, lambda message: print(json.dumps(message), file=_out, flush=True)
        )
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(_code)  # `_exit`, because the watching thread waits for an input that stays open
