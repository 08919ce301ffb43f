"""Checks what people write, and refuses it with a fault."""

from __future__ import annotations

from typing import NoReturn

from webapp.problems import CORRECT, Invalid

NAME_MAX = 60


def checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        refuse("name", f"has to have 1 to {NAME_MAX} characters")
    return name


def refuse(path: str, message: str) -> NoReturn:
    raise Invalid(
        f"{path} {message}.",
        safe="Nothing was changed.",
        next=CORRECT,
        faults=[{"element": None, "path": path, "message": message}],
    )
