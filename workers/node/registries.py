"""Asks schema registries for a node's elements, so that none of their processes has a secret.

a task of Spark's --gate--> here, and a preview --line--> here:  schema 7 of "plant-registry"?
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic

from pydantic import ValidationError

from pipeline_runtime.connectors.schema_registry import SchemaRegistry
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from workers.node.sealed_fields import NotOpened, SealedFields

REGISTRIES_MAX = 100
"""The most registries that are kept with their answers. The one that nobody has asked for the longest time is
dropped first."""
UNUSED_S = 600.0
"""After this time in s without a question, a registry is dropped if its connection has other fields now, or
is not sent any more."""


@dataclass
class _Kept:
    connection: SealedConnection
    registry: SchemaRegistry
    asked_s: float


class NodeRegistries:
    """Safe for threads. It keeps each registry by the name and the fields of its connection. So no preview
    drops the registry of another one."""

    def __init__(self, cluster_key: str) -> None:
        self._sealed = SealedFields(cluster_key)
        self._lock = threading.Lock()  # guards both
        self._kept: dict[bytes, _Kept] = {}  # the one that was asked last is the last one

    def among(self, connections: Callable[[], Sequence[SealedConnection]]) -> Registries:
        """Returns those that these connections lead to, at the time when they are asked."""
        return lambda name: self._registry(name, connections())

    def _registry(self, name: str, connections: Sequence[SealedConnection]) -> SchemaRegistry:
        """Raises SchemaRegistryError."""
        by_name = {each.name: each for each in connections}
        with self._lock:
            self._sealed.keep([*connections, *(each.connection for each in self._kept.values())])
            try:
                fields = self._sealed.of(name, SchemaRegistryConnection, by_name)
                connection = SchemaRegistryConnection.model_validate(fields)
            except NotOpened as why:
                raise SchemaRegistryError(f"{why}.") from None
            except ValidationError:
                raise SchemaRegistryError(
                    f'the connection "{name}" does not fit the Fogline of this node.'
                ) from None
            key = sha256(json.dumps([name, fields], sort_keys=True).encode()).digest()
            known = self._kept.pop(key, None)
            found = SchemaRegistry(connection) if known is None else known.registry
            self._kept[key] = _Kept(by_name[name], found, monotonic())
            unused = self._take_unused(by_name)
        for each in unused:
            each.close()
        return found

    def _take_unused(self, names: Collection[str]) -> list[SchemaRegistry]:
        """Drops the registries that nobody needs, and returns them. The caller holds the lock."""
        newest = {each.connection.name: key for key, each in self._kept.items()}
        needed = {key for name, key in newest.items() if name in names}
        before_s = monotonic() - UNUSED_S
        unused = [key for key, each in self._kept.items() if key not in needed and each.asked_s < before_s]
        too_many = [*self._kept][: max(0, len(self._kept) - REGISTRIES_MAX)]
        return [self._kept.pop(key).registry for key in {*unused, *too_many}]
