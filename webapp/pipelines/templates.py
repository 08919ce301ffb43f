"""Documents to start from: the templates that the engine ships."""

from __future__ import annotations

from functools import cache
from typing import Any

from pipeline_runtime.model.templates import load_template, template_names


@cache
def templates() -> list[dict[str, Any]]:
    """[{name, title, description, document}]"""
    found = []
    for name in template_names():
        document = load_template(name)
        found.append(
            {
                "name": name,
                "title": name.replace("-", " ").capitalize(),
                "description": document.metadata.description or "",
                "document": document.to_data(),
            }
        )
    return found
