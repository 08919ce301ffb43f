"""What is wrong with a pipeline document: one Fault per mistake, each naming its place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.model.spec import Frozen

_HINT_CHARACTERS_MAX = 60
_HINT_NAMES_MAX = 200
FAULTS_MAX = 500
"""Of one reading: nobody reads more, and a large document could have a hundred thousand."""


class Fault(Frozen):
    """One mistake. `path` is where in the document, e.g. `spec.elements[2].params.rate`."""

    element: str | None
    path: str
    message: str
    code: str


class DocumentInvalid(ValueError):
    """The document cannot be used; `faults` has everything that is wrong with it, not the first."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        lines = "; ".join(f"{fault.path}: {fault.message}" for fault in self.faults)
        super().__init__(f"The pipeline document has {len(self.faults)} fault(s): {lines}")


def join_path(*parts: str | int) -> str:
    """('spec', 'elements', 2, 'id') -> 'spec.elements[2].id'; parts may be paths themselves."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part:
            path += f".{part}" if path else part
    return path


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint to append to a message: '; did you mean "rate"?', or nothing."""
    # Comparing takes long: a name that is no name, or a large document full of them, gets no hint.
    if len(name) > _HINT_CHARACTERS_MAX:
        return ""
    near = get_close_matches(name, list(islice(known, _HINT_NAMES_MAX)), n=1, cutoff=0.6)
    return f'; did you mean "{near[0]}"?' if near else ""


def listed(names: Iterable[str], most: int = 12) -> str:
    """'a, b, c', cut after `most` names."""
    all_names = list(names)
    shown = ", ".join(all_names[:most])
    return f"{shown}, ... ({len(all_names)} in all)" if len(all_names) > most else shown


def pydantic_faults(
    error: ValidationError, *, prefix: Sequence[str | int] = (), known: Iterable[str] = ()
) -> list[tuple[str, str, str, tuple[Any, ...]]]:
    """(path, message, code, loc) of the first FAULTS_MAX errors. `known`: the top-level names, for hints."""
    known_names = tuple(known)
    found = []
    errors = error.errors(include_url=False, include_context=False, include_input=True)
    for item in errors[:FAULTS_MAX]:
        loc = tuple(part for part in item["loc"] if not str(part).startswith("function-"))
        code, message = _describe(item["type"], item["msg"], loc, item.get("input"), known_names)
        found.append((join_path(*prefix, *loc), message, code, loc))
    return found


def _describe(
    kind: str, text: str, loc: tuple[Any, ...], value: Any, known: tuple[str, ...]
) -> tuple[str, str]:
    name = str(loc[-1]) if loc else ""
    if kind == "extra_forbidden":
        return "unknown_field", f'unknown field "{name}"{did_you_mean(name, known)}'
    if kind == "missing":
        return "missing", f'"{name}" is required'
    message = text.removeprefix("Value error, ").removeprefix("Input ")
    if isinstance(value, str | int | float | bool) and kind != "value_error":
        message = f"{message} (it is {str(value)[:60]!r})"
    return "invalid", message
