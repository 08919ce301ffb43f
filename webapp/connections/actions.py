"""Makes, changes, removes and tests connections."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, cast

from django.conf import settings
from django.db import transaction

from pipeline_runtime.model.connectors import PURPOSE_AT_REST
from pipeline_runtime.model.names import listed_and
from pipeline_runtime.model.simulated import SIMULATED
from pipeline_runtime.operators.connections import NAME, ConnectionFields, field_faults, kinds
from pipeline_runtime.sealing import seal
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.audit.records import audit
from webapp.backends import commands
from webapp.backends.node_questions import ask_test
from webapp.connections.models import Connection
from webapp.connections.schemas import ConnectionTested
from webapp.connections.selectors import connection_named, sealed_for_nodes, secrets_of
from webapp.nodes.models import Node
from webapp.problems import CORRECT, Conflict, Invalid, Missing

CONNECTIONS_MAX = 200
SAFE = "Nothing was changed."


@dataclass(frozen=True)
class Look:
    """What to look at in a system: what lies at `path`, or what has `find` in its name; both empty: all."""

    path: str = ""
    find: str = ""


@transaction.atomic
def create(actor: User, name: str, kind: str, fields: dict[str, Any]) -> Connection:
    require(actor, Role.ADMIN, "make connections")
    if not re.fullmatch(NAME, name):
        raise _invalid("name", "at most 60 small letters, digits and hyphens")
    if name in SIMULATED or Connection.objects.filter(pk=name).exists():
        raise Conflict(
            f'There is a connection "{name}" already.',
            safe=SAFE,
            next="Choose another name, or change that one.",
        )
    if Connection.objects.count() >= CONNECTIONS_MAX:
        raise Conflict(
            f"There are {CONNECTIONS_MAX} connections already.",
            safe=SAFE,
            next="Delete one that is not used.",
        )
    made = Connection(name=name, kind=kind)
    _set(made, actor, _checked(kind, fields))
    made.save(force_insert=True)
    audit(actor, "connection.create", name, kind=kind)
    _tell()
    return made


@transaction.atomic
def change(actor: User, name: str, fields: dict[str, Any]) -> Connection:
    """Replaces the fields of a connection. A secret that is not among them stays, and null removes it."""
    require(actor, Role.ADMIN, "change connections")
    found = connection_named(name)
    _set(found, actor, _checked(found.kind, _with_secrets(found, fields)))
    found.save()
    audit(actor, "connection.change", name)
    _tell()
    return found


@transaction.atomic
def remove(actor: User, name: str, used_by: Collection[str]) -> None:
    """Removes a connection. `used_by`: the elements that use it."""
    require(actor, Role.ADMIN, "delete connections")
    found = connection_named(name)
    if used_by:
        raise Conflict(
            f'The connection "{name}" is used by {listed_and(list(used_by))}.',
            safe=SAFE,
            next="Undeploy these elements, or deploy them with another connection.",
        )
    found.delete()
    audit(actor, "connection.delete", name)
    _tell()


def try_stored(
    actor: User, name: str, node: str, look: Look = Look(), fields: dict[str, Any] | None = None
) -> ConnectionTested:
    """Tries a stored connection on a node. With `fields`, tries it with these fields, as an admin wants to
    change them."""
    require(actor, Role.OPERATOR if fields is None else Role.ADMIN, "test connections")
    if name in SIMULATED and fields is None:
        machine = SIMULATED[name]
        return _tested(machine.kind, _checked(machine.kind, dict(machine.fields)), node, look)
    found = connection_named(name)
    whole = {**found.fields, **secrets_of(found)} if fields is None else _with_secrets(found, fields)
    return _tested(found.kind, _checked(found.kind, whole), node, look)


def try_new(actor: User, kind: str, node: str, fields: dict[str, Any]) -> ConnectionTested:
    """Tries a connection that is not stored yet."""
    require(actor, Role.ADMIN, "test connections that are not made yet")
    return _tested(kind, _checked(kind, fields), node, Look())


def _tested(kind: str, fields: dict[str, Any], node: str, look: Look) -> ConnectionTested:
    chosen = Node.objects.filter(name=node).first() if node else _any_node()
    if chosen is None:
        what = f'There is no node "{node}".' if node else "No node is up that could test it."
        raise Missing(what, next="Choose a node that is up.")
    sealed = sealed_for_nodes(fields)
    answer = ask_test(chosen.name, kind=kind, sealed=sealed, path=look.path, find=look.find)
    return cast(ConnectionTested, {"node": chosen.name, **answer.model_dump(mode="json")})


def _any_node() -> Node | None:
    return Node.objects.filter(up=True).order_by("name").first()


def _with_secrets(found: Connection, fields: dict[str, Any]) -> dict[str, Any]:
    if _kind(found.kind).secrets() <= fields.keys():  # also when the stored ones cannot be opened
        return fields
    return {**secrets_of(found), **fields}


def _checked(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the fields with their defaults. Raises Invalid, whose text holds no value of a field."""
    known = _kind(kind)
    given = {name: value for name, value in fields.items() if value is not None and value != ""}
    faults = field_faults(known, given)
    if faults:
        raise Invalid(
            "The connection has faults: " + "; ".join(f"{path}: {message}" for path, message in faults),
            safe=SAFE,
            next=CORRECT,
            faults=[{"element": None, "path": path, "message": message} for path, message in faults],
        )
    return known.model_validate(given).model_dump(mode="json")


def _kind(kind: str) -> type[ConnectionFields]:
    known = kinds().get(kind)
    if known is None:
        raise _invalid("kind", f"there is no kind of connection {kind!r}; there are {', '.join(kinds())}")
    return known


def _set(found: Connection, actor: User, fields: dict[str, Any]) -> None:
    secret = _kind(found.kind).secrets()
    secrets = {name: value for name, value in fields.items() if name in secret and value is not None}
    found.fields = {name: value for name, value in fields.items() if name not in secret}
    found.sealed = seal(json.dumps(secrets), settings.FOGLINE.secret_key, PURPOSE_AT_REST) if secrets else ""
    found.version = max(int(time.time() * 1000), (found.version or 0) + 1)
    found.changed_by = actor


def _tell() -> None:
    commands.send(tasks.DESIRED_CHANGED)


def _invalid(path: str, message: str) -> Invalid:
    return Invalid(
        f"{path}: {message}",
        safe=SAFE,
        next=CORRECT,
        faults=[{"element": None, "path": path, "message": message}],
    )
