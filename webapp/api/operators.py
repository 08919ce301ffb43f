from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest
from ninja import Router
from pydantic import Field

from pipeline_runtime.model.connectors import Found
from pipeline_runtime.model.schema import COLUMNS_MAX, Field as Column
from pipeline_runtime.operators import sdk
from pipeline_runtime.operators.connected import ConnectedOperator
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from webapp.api.accounts import Body
from webapp.pipelines.schemas import Operator, Taken
from webapp.problems import Invalid, Missing

router = Router(tags=["operators"])


@router.get("/operators", response=list[Operator])
def list_operators(request: HttpRequest) -> list[Operator]:
    """Lists the palette: every operator with the JSON Schema of its parameters."""
    return cast(list[Operator], default_registry().describe_all())


@router.get("/operators/{type}", response=Operator)
def operator(request: HttpRequest, type: str) -> Operator:
    """Returns one operator with the JSON Schema of its parameters."""
    _known(type)
    return cast(Operator, default_registry().describe(type))


class TickedIn(Body):
    params: dict[str, Any]
    ticked: list[Found] = Field(min_length=1, max_length=1000)
    columns: list[Column] = Field([], max_length=COLUMNS_MAX)


@router.post("/operators/{type}/taken", response=Taken)
def taken(request: HttpRequest, type: str, body: TickedIn) -> Taken:
    """Returns the parameters of a draft's element with what was ticked in its system: entries of `found` of a
    connection's test. `columns` are those of its input. Nothing is stored."""
    known = _known(type)
    if not issubclass(known, ConnectedOperator) or known.ticks == "none":
        raise Missing(f"Nothing can be ticked for {known.title}.", next="Fill in its parameters.")
    try:
        return {"params": known.taken(body.params, body.ticked, body.columns)}
    except ValueError as error:
        raise Invalid(
            f"These do not go together: {error}.", safe="Nothing was changed.", next="Tick others."
        ) from error


def _known(type: str) -> type[sdk.Operator]:
    try:
        return default_registry().get(type)
    except OperatorUnknown as error:
        raise Missing(str(error), next="See GET /api/v1/operators.") from error
