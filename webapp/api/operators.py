from __future__ import annotations

from typing import cast

from django.http import HttpRequest
from ninja import Router

from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.pipelines.schemas import Operator
from webapp.problems import Missing

router = Router(tags=["operators"])


@router.get("/operators", response=list[Operator])
def list_operators(request: HttpRequest) -> list[Operator]:
    """Lists the palette: every operator with the JSON Schema of its parameters."""
    return cast(list[Operator], default_registry().describe_all())


@router.get("/operators/{type}", response=Operator)
def operator(request: HttpRequest, type: str) -> Operator:
    """Returns one operator with the JSON Schema of its parameters."""
    try:
        return cast(Operator, default_registry().describe(type))
    except OperatorUnknown as error:
        raise Missing(str(error), next="See GET /api/v1/operators.") from error
