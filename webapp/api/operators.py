from __future__ import annotations

from typing import Any

from django.http import HttpRequest
from ninja import Router

from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.problems import Missing

router = Router(tags=["operators"])


@router.get("/operators")
def list_operators(request: HttpRequest) -> Any:
    """The palette: every operator with the JSON Schema of its parameters."""
    return default_registry().describe_all()


@router.get("/operators/{type}")
def operator(request: HttpRequest, type: str) -> Any:
    try:
        return default_registry().describe(type)
    except OperatorUnknown as error:
        raise Missing(str(error), next="See GET /api/v1/operators.") from error
