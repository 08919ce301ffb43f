"""Every route says what it answers, and the browser knows the same types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from pipeline_runtime.handover.phases import Strategy
from webapp.api.api import api
from webapp.api.typescript import api_types, type_of
from webapp.handovers.schemas import StrategyName

GENERATED = Path(__file__).parents[3] / "static/shared/api.gen.ts"


def test_the_browsers_types_are_current() -> None:
    assert GENERATED.read_text() == api_types(), "run `make api-types`"


def test_answers_know_each_strategy() -> None:
    assert set(get_args(StrategyName)) == set(Strategy)


def test_every_route_has_a_response_type() -> None:
    missing = []
    for _, router in api._routers:
        for path, view in router.path_operations.items():
            for operation in view.operations:
                returns = operation.view_func.__annotations__.get("return")
                if returns in ("HttpResponse", "StreamingHttpResponse"):
                    continue  # a file, not JSON
                if returns in (None, "Any") or not _typed(operation.response_models):
                    missing.append(f"{operation.methods} {path}")
    assert missing == []


def _typed(models: dict[Any, Any]) -> bool:
    return bool(models) and all(
        model is None or getattr(model, "model_fields", {}).get("response") is not None
        for model in models.values()
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "integer"}, {"type": "number"}, {"type": "null"}]}, "number | null"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/A"}}, "Record<string, A>"),
        (
            {"properties": {"a-b": {"type": "string"}, "c": {}}, "required": ["a-b"], "type": "object"},
            '{\n  "a-b": string;\n  c?: unknown;\n}',
        ),
    ],
)
def test_a_json_schema_as_a_typescript_type(schema: dict[str, Any], expected: str) -> None:
    assert type_of(schema, "") == expected


def test_a_schema_that_is_not_known_is_no_guess() -> None:
    with pytest.raises(ValueError, match="no TypeScript type"):
        type_of({"not": {}}, "")


def test_each_route_says_what_it_does() -> None:
    paths = api.get_openapi_schema(path_prefix="")["paths"]
    routes = {
        f"{method} {path}": route for path, methods in paths.items() for method, route in methods.items()
    }
    assert [name for name, route in routes.items() if not route.get("description")] == []
