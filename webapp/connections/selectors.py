"""Reads connections. Only what is sent to a node has their secrets, and is sealed."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from django.conf import settings

from pipeline_runtime.model.connectors import PURPOSE_AT_REST, PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.simulated import SIMULATED, Simulated
from pipeline_runtime.operators.connections import ConnectionFields, connections_of, kinds
from pipeline_runtime.operators.registry import OperatorUnknown, default_registry
from pipeline_runtime.sealing import SealBroken, opened, seal
from webapp.connections.models import Connection
from webapp.connections.schemas import ConnectionItem, ConnectionKind
from webapp.problems import Conflict, Missing


class Named(NamedTuple):
    """A connection that an element names."""

    name: str
    kind: str  # that is needed
    parameter: str


def connection_named(name: str) -> Connection:
    """Returns the connection of that name. Raises Missing, or Conflict if it is the connection of a simulated
    machine."""
    if name in SIMULATED:
        raise Conflict(
            f'"{name}" belongs to a simulated machine, and nobody can change it.',
            safe="Nothing was changed.",
            next="Use it as it is, or make a connection of your own.",
        )
    found = Connection.objects.select_related("changed_by").filter(pk=name).first()
    if found is None:
        raise Missing(f'There is no connection "{name}".', next="See the list of connections.")
    return found


def all_kinds() -> list[ConnectionKind]:
    return [
        {"kind": kind.kind, "title": kind.title, "form": kind.model_json_schema()}
        for kind in sorted(kinds().values(), key=lambda each: each.title.casefold())
    ]


def item(found: Connection, used_by: Iterable[str], *, whole: bool) -> ConnectionItem:
    """Returns a connection for an answer. `whole`: with the fields that are no secret."""
    kind = kinds().get(found.kind)
    secrets: dict[str, Any] = {}
    lost = False
    if whole:
        try:
            secrets = secrets_of(found)
        except Conflict:  # one connection must not keep the others from being seen
            lost = True
    return {
        "name": found.name,
        "kind": found.kind,
        "title": kind.title if kind is not None else found.kind,
        "fields": dict(found.fields) if whole else None,
        "secrets": sorted(secrets),
        "secrets_lost": lost,
        "simulated": False,
        "changed_at": found.changed_at.isoformat(),
        "changed_by": found.changed_by.username if found.changed_by else None,
        "used_by": list(used_by),
    }


def simulated_item(machine: Simulated, used_by: Iterable[str]) -> ConnectionItem:
    return {
        "name": machine.name,
        "kind": machine.kind,
        "title": machine.title,
        "fields": None,
        "secrets": [],
        "secrets_lost": False,
        "simulated": True,
        "changed_at": None,
        "changed_by": None,
        "used_by": list(used_by),
    }


def secrets_of(found: Connection) -> dict[str, Any]:
    """Returns the secret fields. Raises Conflict if they cannot be opened."""
    if not found.sealed:
        return {}
    try:
        secrets: dict[str, Any] = json.loads(
            opened(found.sealed, settings.FOGLINE.secret_key, PURPOSE_AT_REST)
        )
    except SealBroken as error:
        raise Conflict(
            f'The secrets of the connection "{found.name}" cannot be opened. {error}',
            safe="Nothing was changed.",
            next="Bring back the former FOGLINE_SECRET_KEY, or enter the connection's secrets again.",
        ) from error
    return secrets


def sealed_for_nodes(fields: Mapping[str, Any]) -> str:
    """Returns all fields of a connection, so that only nodes can read them."""
    return seal(json.dumps(dict(fields)), settings.FOGLINE.cluster_key, PURPOSE_SENT)


def sent(found: Connection) -> SealedConnection:
    """Returns what control tells a node about a connection. If the secrets cannot be opened, the node learns
    only that."""
    try:
        sealed = sealed_for_nodes({**found.fields, **secrets_of(found)})
    except Conflict:
        sealed = ""
    return SealedConnection(name=found.name, kind=found.kind, version=found.version, sealed=sealed)


def sent_of(names: Collection[str]) -> tuple[SealedConnection, ...]:
    """Returns what control tells a node about these connections, in a fixed order. Leaves out connections
    that do not exist."""
    machines = (SIMULATED[name] for name in sorted(names) if name in SIMULATED)
    return (
        *(sent(each) for each in Connection.objects.filter(pk__in=names).order_by("name")),
        *(
            SealedConnection(name=each.name, kind=each.kind, version=1, sealed=sealed_for_nodes(each.fields))
            for each in machines
        ),
    )


def named_in(elements: Iterable[Mapping[str, Any]]) -> set[Named]:
    """Returns the connections that elements name, as a document or a definition has them."""
    found = set()
    for element in elements:
        params = element.get("params") or {}
        for parameter, kind in _kinds_needed(str(element.get("type") or "")).items():
            name = params.get(parameter)
            if isinstance(name, str):
                found.add(Named(name, kind.kind, parameter))
    return found


def _kinds_needed(operator_type: str) -> dict[str, type[ConnectionFields]]:
    """Returns the parameters of an operator that name connections, each with the kind that it needs."""
    try:
        return connections_of(default_registry().get(operator_type))
    except OperatorUnknown:
        return {}


def kinds_by_name(names: Collection[str]) -> dict[str, str]:
    """Returns the kind of each of these connections. Leaves out connections that do not exist."""
    simulated = {name: SIMULATED[name].kind for name in names if name in SIMULATED}
    return simulated | dict(Connection.objects.filter(pk__in=names).values_list("name", "kind"))
