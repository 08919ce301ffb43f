"""Documents to start from: the templates that the engine ships."""

from __future__ import annotations

from typing import Any


def templates() -> list[dict[str, Any]]:
    """[{name, title, description, document}]"""
    return []
