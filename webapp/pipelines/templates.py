"""Documents to start from: the templates that the engine ships."""

from __future__ import annotations

from functools import cache

from pipeline_runtime.model.templates import load_template, template_names
from webapp.pipelines.schemas import Template


@cache
def templates() -> list[Template]:
    found: list[Template] = []
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
