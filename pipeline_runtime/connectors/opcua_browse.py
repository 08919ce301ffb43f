"""Tries an OPC UA connection, and looks into the tree of the server."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import Any

from asyncua import Node, ua

from pipeline_runtime.connectors.opcua_rows import plain
from pipeline_runtime.connectors.opcua_session import Session, connected, status_name
from pipeline_runtime.connectors.sdk import ConnectorError, Probed, shown_value
from pipeline_runtime.model.connectors import ROWS_SHOWN, VALUE_MAX, Found
from pipeline_runtime.model.schema import FieldType
from pipeline_runtime.operators.opcua import OpcUaConnection

FOUND_MAX = 500
LOOK_S = 5.0
SEARCH_S = 3.5
SEARCHED_MAX = 20_000
"""How many nodes a search looks at."""
_AT_ONCE = 50
_WITHIN_MAX = 20
_NAMED_MAX = 5
_OBJECTS = "i=85"
_SERVER = ua.NodeId(ua.ObjectIds.Server)
"""It tells of itself there, in hundreds of nodes."""
_UNIT = "EngineeringUnits"
_SHOWN = ua.NodeClass.Object | ua.NodeClass.Variable


def probe(connection: OpcUaConnection, path: str) -> Probed:
    """Shows what lies below the node `path`, or below the objects of the server, with the values there."""
    try:
        start = ua.NodeId.from_string(path or _OBJECTS)
    except ua.UaError as error:
        raise ConnectorError(
            f"{path[:VALUE_MAX]} is no node id: write ns=2;s=Line1.", lasting=True
        ) from error
    return asyncio.run(_asked(connection, lambda session: _looked(session, start)))


def search(connection: OpcUaConnection, find: str) -> Probed:
    """Shows the values anywhere in the server's tree whose name, or a name above them, has `find` in it."""
    return asyncio.run(_asked(connection, lambda session: _searched(session, find)))


async def _asked(connection: OpcUaConnection, ask: Callable[[Session], Awaitable[Probed]]) -> Probed:
    async with connected(connection, "fogline-test") as session:
        try:
            async with asyncio.timeout(LOOK_S):
                return await ask(session)
        except TimeoutError as error:
            raise ConnectorError(
                f"{connection.where} lets us in, and takes more than {LOOK_S:.0f} s to tell what it has."
            ) from error
        except (ua.UaError, ConnectionError) as error:
            raise ConnectorError(f"{connection.where} does not list its nodes: {error}.") from error


Placed = tuple[ua.ReferenceDescription, tuple[str, ...]]
"""A node, and the titles of those that it lies in."""


async def _looked(session: Session, start: ua.NodeId) -> Probed:
    [below] = await _children(session, [start], ua.ObjectIds.HierarchicalReferences, strict=True)
    below = _worth_showing(below)
    found, rows = await _described(session, [(each, ()) for each in below[:FOUND_MAX]])
    more = f" The first {FOUND_MAX} are shown: search for the others." if len(below) > FOUND_MAX else ""
    usable = sum(each.usable for each in found)
    words = f"Connected. {len(found)} nodes lie there, {usable} of them with a value.{more}"
    return Probed(words if found else "Connected. There is nothing below this node.", rows, found)


async def _searched(session: Session, find: str) -> Probed:
    wanted, until_s = find.casefold(), monotonic() + SEARCH_S
    first = ua.NodeId.from_string(_OBJECTS)
    waiting: deque[tuple[ua.NodeId, tuple[str, ...]]] = deque([(first, ())])
    seen: set[ua.NodeId] = {_SERVER}
    matching: list[Placed] = []
    refused: list[str] = []
    while waiting and len(seen) < SEARCHED_MAX and len(matching) < FOUND_MAX and monotonic() < until_s:
        at_once = [waiting.popleft() for _ in range(min(_AT_ONCE, len(waiting)))]
        nodes = [node for node, _ in at_once]
        answers = await _children(
            session,
            nodes,
            ua.ObjectIds.HierarchicalReferences,
            SEARCHED_MAX,
            strict=nodes[0] == first,
            refused=refused,
        )
        for (_, within), below in zip(at_once, answers, strict=True):
            for each in _worth_showing(below):
                if each.NodeId in seen:
                    continue
                seen.add(each.NodeId)
                title = _title(each)
                waiting.append((each.NodeId, (*within[-_WITHIN_MAX:], title)))
                is_value = each.NodeClass == ua.NodeClass.Variable
                if is_value and any(wanted in name.casefold() for name in (*within, title)):
                    matching.append((each, within))
    found, rows = await _described(session, matching[:FOUND_MAX])
    words = f"{len(found)} values have “{find}” in their name, or lie in what has."
    if waiting:
        words += f" {len(seen)} nodes were looked at, and there are more: search for more of the name."
    if refused:
        named = ", ".join(sorted(set(refused))[:_NAMED_MAX])
        words += f" The server does not tell what lies below {len(refused)} of its nodes ({named})."
    return Probed(words, rows, found)


def _worth_showing(below: Iterable[ua.ReferenceDescription]) -> list[ua.ReferenceDescription]:
    return [each for each in below if each.NodeClass & _SHOWN and each.ReferenceTypeId != _PROPERTY]


def _title(node: ua.ReferenceDescription) -> str:
    return str(node.DisplayName.Text or node.BrowseName.Name)[:VALUE_MAX]


async def _described(
    session: Session, placed: Sequence[Placed]
) -> tuple[tuple[Found, ...], tuple[dict[str, Any], ...]]:
    """Returns what is known of the nodes, and the first of their values as rows."""
    variables = [each for each, _ in placed if each.NodeClass == ua.NodeClass.Variable]
    nodes = [session.client.get_node(each.NodeId) for each in variables]
    data = await session.client.read_attributes(nodes, ua.AttributeIds.Value) if nodes else []
    facts = zip(data, await _types(session, nodes), *await _units(session, variables), strict=True)
    found: list[Found] = []
    rows: list[dict[str, Any]] = []
    for each, within in placed:
        place: dict[str, Any] = {"path": each.NodeId.to_string(), "title": _title(each), "within": within}
        if each.NodeClass != ua.NodeClass.Variable:
            found.append(Found(**place, inner=True))
            continue
        value, type_, unit, inner = next(facts)
        seen = _value(value)
        rows.append({"name": place["title"], **seen})
        found.append(
            Found(
                **place,
                type=type_,
                unit=unit,
                inner=inner,
                usable=True,
                holds=_holds(type_, value),
                value=seen["value"],
            )
        )
    return tuple(found), tuple(rows[:ROWS_SHOWN])


def _holds(type_: str, data: ua.DataValue) -> FieldType:
    """Returns the type of a column for the values of a variable. Arrays are texts."""
    value = None if data.Value is None else data.Value.Value
    if isinstance(value, list):
        return FieldType.STRING
    named = _TYPES.get(type_)
    if named is not None:
        return named
    kinds = ((bool, FieldType.BOOLEAN), (int, FieldType.INTEGER), (float, FieldType.NUMBER))
    return next((kind for python, kind in kinds if isinstance(value, python)), FieldType.STRING)


_TYPES = {
    **dict.fromkeys(
        ("SByte", "Byte", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"), FieldType.INTEGER
    ),
    **dict.fromkeys(("Float", "Double"), FieldType.NUMBER),
    "Boolean": FieldType.BOOLEAN,
    "String": FieldType.STRING,
    **dict.fromkeys(("DateTime", "UtcTime"), FieldType.TIMESTAMP),
}


_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)


async def _children(
    session: Session,
    nodes: Sequence[ua.NodeId],
    kind: int,
    most: int = FOUND_MAX + 1,
    *,
    strict: bool = False,
    refused: list[str] | None = None,
) -> list[list[ua.ReferenceDescription]]:
    """Returns what lies below each of the nodes, `most` of each. `strict`: raises UaError if the first is
    refused; else nothing lies below one that is, and the reason is added to `refused`."""
    asked = ua.BrowseParameters()
    asked.RequestedMaxReferencesPerNode = most
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
    if strict:
        results[0].StatusCode.check()
    if refused is not None:
        refused += [status_name(each.StatusCode.value) for each in results if each.StatusCode.is_bad()]
    return [await _whole(session, result, most) for result in results]


async def _whole(session: Session, result: ua.BrowseResult, most: int) -> list[ua.ReferenceDescription]:
    """Returns also what the server did not send at once."""
    found = list(result.References or ())
    while result.ContinuationPoint and len(found) < most:
        following = ua.BrowseNextParameters()
        following.ReleaseContinuationPoints = False
        following.ContinuationPoints = [result.ContinuationPoint]
        [result] = await session.client.uaclient.browse_next(following)
        found += result.References or ()
    return found


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
    return str(text or "")[:VALUE_MAX]


def _value(data: ua.DataValue) -> dict[str, Any]:
    value = plain(None if data.Value is None else data.Value.Value)
    status = data.StatusCode.value if data.StatusCode is not None else 0
    return {"value": shown_value(value), "status": status_name(status)}
