"""Pipelines to start from. Each has a page that explains it."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.model.document import PipelineDocument, parse_document
from pipeline_runtime.model.templates.page import TemplatePage, parse_page

_FOLDER = Path(__file__).parent


def template_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_template(name: str) -> PipelineDocument:
    """Returns the template's document. Raises LookupError, which names the templates that exist."""
    return parse_document(_text_of(name, "yaml"))


def load_page(name: str) -> TemplatePage:
    """Returns the page that explains the template. Raises LookupError as above."""
    return parse_page(_text_of(name, "md"))


def _text_of(name: str, ending: str) -> str:
    if name not in template_names():
        raise LookupError(f'there is no template "{name}"; there are {", ".join(template_names())}')
    return (_FOLDER / f"{name}.{ending}").read_text(encoding="utf-8")
