"""Drafts of a few elements, and what a preview shows of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.document import parse_document
from pipeline_runtime.model.preview import PreviewAnswer, PreviewQuestion
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.path import path_document, reads_of
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.preview.run import preview

NOW_MS = 2_000_000_000_000  # the rows have come before
NO_KAFKA = KafkaSettings("127.0.0.1:1")

GENERATOR = {"id": "in", "type": "generator", "params": {"rate": 10, "signals": [{"name": "x"}]}}


def draft(*elements: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": "drawn"},
        "spec": {"elements": list(elements)},
    }


def question(document: dict[str, Any], element: str, **more: Any) -> PreviewQuestion:
    groups = plan_groups(parse_document(path_document(document, element)), "preview", default_registry(), {})
    return PreviewQuestion(
        id="0" * 32, element=element, groups=groups, reads=reads_of(document, element), **more
    )


def previewed(document: dict[str, Any], element: str, **more: Any) -> PreviewAnswer:
    return preview(question(document, element, **more), NO_KAFKA, {}, Path("/nonexistent"), NOW_MS, {})


def rows(answer: PreviewAnswer) -> list[dict[str, Any]]:
    """The rows that the element gives, by column."""
    assert answer.refused is None, answer
    assert answer.output is not None
    return [dict(zip(answer.output.columns, row.values, strict=True)) for row in answer.output.rows]


COLUMNS = [
    {"name": "k"},
    {"name": "x", "type": "number"},
    {"name": "n", "type": "integer"},
    {"name": "flag", "type": "boolean"},
]
TOPIC = {"id": "in", "type": "kafka-in", "params": {"topic": "t", "columns": COLUMNS, "key": "k"}}
