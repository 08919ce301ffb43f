"""Asks schema registries for a node's elements, so that none of their processes has a secret.

a task of Spark's --gate--> here, and a preview --line--> here:  schema 7 of "plant-registry"?
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from pydantic import ValidationError

from pipeline_runtime.connectors.schema_registry import SchemaRegistry
from pipeline_runtime.formats.schema_registry import Registries, SchemaRegistryError
from pipeline_runtime.model.connectors import SealedConnection
from pipeline_runtime.operators.schema_registry import SchemaRegistryConnection
from workers.node.sealed_fields import NotOpened, SealedFields


class NodeRegistries:
    """Safe for threads."""

    def __init__(self, cluster_key: str) -> None:
        self._sealed = SealedFields(cluster_key)
        self._lock = threading.Lock()  # guards both
        self._kept: dict[
            str, tuple[dict[str, Any], SchemaRegistry]
        ] = {}  # by name: the fields, and what asks

    def among(self, connections: Callable[[], Sequence[SealedConnection]]) -> Registries:
        """Returns those that these connections lead to, at the time when they are asked. Others are
        forgotten."""
        return lambda name: self._registry(name, connections())

    def _registry(self, name: str, connections: Sequence[SealedConnection]) -> SchemaRegistry:
        """Raises SchemaRegistryError."""
        with self._lock:
            self._sealed.keep(connections)
            by_name = {each.name: each for each in connections}
            self._kept = {each: kept for each, kept in self._kept.items() if each in by_name}
            try:
                fields = self._sealed.of(name, SchemaRegistryConnection, by_name)
                connection = SchemaRegistryConnection.model_validate(fields)
            except NotOpened as why:
                raise SchemaRegistryError(f"{why}.") from None
            except ValidationError:
                raise SchemaRegistryError(
                    f'the connection "{name}" does not fit the Fogline of this node.'
                ) from None
            known = self._kept.get(name)
            if known is None or known[0] != fields:
                self._kept[name] = known = fields, SchemaRegistry(connection)
            return known[1]
