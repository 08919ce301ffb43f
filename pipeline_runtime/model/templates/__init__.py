"""Pipelines to start from."""

from __future__ import annotations

from pathlib import Path

from pipeline_runtime.model.document import PipelineDocument, parse_document

_FOLDER = Path(__file__).parent


def template_names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load_template(name: str) -> PipelineDocument:
    """The template's document; LookupError names those that there are."""
    if name not in template_names():
        raise LookupError(f'there is no template "{name}"; there are {", ".join(template_names())}')
    return parse_document((_FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
