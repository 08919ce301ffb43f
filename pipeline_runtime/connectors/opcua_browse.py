"""Tries an OPC UA connection, and looks into the tree of the server."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from asyncua import Node, ua

from pipeline_runtime.connectors.opcua_rows import plain
from pipeline_runtime.connectors.opcua_session import Session, connected, status_name
from pipeline_runtime.connectors.sdk import ConnectorError, Probed
from pipeline_runtime.model.connectors import ROWS_SHOWN, Found
from pipeline_runtime.operators.opcua import OpcUaConnection

FOUND_MAX = 500
LOOK_S = 5.0
_QUOTED = 200
_OBJECTS = "i=85"
_UNIT = "EngineeringUnits"
_SHOWN = ua.NodeClass.Object | ua.NodeClass.Variable


def probe(connection: OpcUaConnection, path: str) -> Probed:
    """Shows what lies below the node `path`, or below the objects of the server, with the values there."""
    return asyncio.run(_probe(connection, path))


async def _probe(connection: OpcUaConnection, path: str) -> Probed:
    try:
        start = ua.NodeId.from_string(path or _OBJECTS)
    except ua.UaError as error:
        raise ConnectorError(f"{path[:_QUOTED]} is no node id: write ns=2;s=Line1.", lasting=True) from error
    async with connected(connection, "fogline-test") as session:
        try:
            async with asyncio.timeout(LOOK_S):
                return await _looked(session, start, connection.where)
        except TimeoutError as error:
            raise ConnectorError(
                f"{connection.where} lets us in, and takes more than {LOOK_S:.0f} s to tell what it has."
            ) from error
        except (ua.UaError, ConnectionError) as error:
            raise ConnectorError(f"{connection.where} does not tell what it has: {error}.") from error


async def _looked(session: Session, start: ua.NodeId, where: str) -> Probed:
    [below] = await _children(session, [start], ua.ObjectIds.HierarchicalReferences)
    below = [each for each in below if each.NodeClass & _SHOWN and each.ReferenceTypeId != _PROPERTY]
    shown = below[:FOUND_MAX]
    variables = [each for each in shown if each.NodeClass == ua.NodeClass.Variable]
    nodes = [session.client.get_node(each.NodeId) for each in variables]
    values = await session.client.read_attributes(nodes, ua.AttributeIds.Value) if nodes else []
    types = await _types(session, nodes)
    units, inner = await _units(session, variables)
    found = []
    for each in shown:
        at = variables.index(each) if each in variables else None
        found.append(
            Found(
                path=each.NodeId.to_string(),
                title=str(each.DisplayName.Text or each.BrowseName.Name),
                type="" if at is None else types[at],
                unit="" if at is None else units[at],
                inner=at is None or inner[at],
            )
        )
    rows = tuple(
        {"name": found[shown.index(each)].title, **_value(values[at])}
        for at, each in enumerate(variables[:ROWS_SHOWN])
    )
    more = f" Of {len(below)}, the first {FOUND_MAX} are shown." if len(below) > FOUND_MAX else ""
    words = f"Connected. {len(shown)} nodes lie there, {len(variables)} of them with a value.{more}"
    return Probed(words if shown else "Connected. Nothing lies below this node.", rows, tuple(found))


_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)


async def _children(
    session: Session, nodes: Sequence[ua.NodeId], kind: int
) -> list[list[ua.ReferenceDescription]]:
    """Returns what lies below each of the nodes. More than the server sends at once is left out."""
    asked = ua.BrowseParameters()
    asked.RequestedMaxReferencesPerNode = FOUND_MAX + 1
    for each in nodes:
        wanted = ua.BrowseDescription()
        wanted.NodeId = each
        wanted.BrowseDirection = ua.BrowseDirection.Forward
        wanted.ReferenceTypeId = ua.NodeId(kind)
        wanted.IncludeSubtypes = True
        wanted.NodeClassMask = 0
        wanted.ResultMask = ua.BrowseResultMask.All
        asked.NodesToBrowse.append(wanted)
    results = await session.client.uaclient.browse(asked)
    for result in results[:1] if len(nodes) == 1 else ():
        result.StatusCode.check()
    return [list(result.References or ()) for result in results]


async def _types(session: Session, nodes: Sequence[Node]) -> list[str]:
    """Returns the name of each variable's type, such as Double."""
    if not nodes:
        return []
    found = await session.client.read_attributes(nodes, ua.AttributeIds.DataType)
    ids = [each.Value.Value if each.Value is not None else None for each in found]
    known = {each: await _type_name(session, each) for each in set(ids) if each is not None}
    return [known.get(each, "") for each in ids]


async def _type_name(session: Session, type_: ua.NodeId) -> str:
    if type_.NamespaceIndex == 0 and isinstance(type_.Identifier, int):
        name = ua.ObjectIdNames.get(type_.Identifier)
        if name is not None:
            return str(name)
    return str((await session.client.get_node(type_).read_browse_name()).Name)


async def _units(
    session: Session, variables: Sequence[ua.ReferenceDescription]
) -> tuple[list[str], list[bool]]:
    """Returns the unit of each variable, and whether there is more below it than its properties."""
    if not variables:
        return [], []
    below = await _children(session, [each.NodeId for each in variables], ua.ObjectIds.HierarchicalReferences)
    inner = [any(each.ReferenceTypeId != _PROPERTY for each in children) for children in below]
    unit_nodes = [
        next((each.NodeId for each in children if each.BrowseName.Name == _UNIT), None) for children in below
    ]
    asked = [session.client.get_node(each) for each in unit_nodes if each is not None]
    read = iter(await session.client.read_attributes(asked, ua.AttributeIds.Value) if asked else [])
    return ["" if each is None else _unit(next(read)) for each in unit_nodes], inner


def _unit(data: ua.DataValue) -> str:
    value = None if data.Value is None else data.Value.Value
    text = getattr(getattr(value, "DisplayName", None), "Text", None)
    return str(text or "")[:_QUOTED]


def _value(data: ua.DataValue) -> dict[str, Any]:
    value = plain(None if data.Value is None else data.Value.Value)
    status = data.StatusCode.value if data.StatusCode is not None else 0
    return {"value": value[:_QUOTED] if isinstance(value, str) else value, "status": status_name(status)}
