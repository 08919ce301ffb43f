"""Opens the connections that a node is sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.spec import ElementSpec
from pipeline_runtime.operators.connected import ConnectedOperator
from pipeline_runtime.sealing import SealBroken, opened


class SealedFields:
    """For one thread. What was opened is kept in memory, since opening takes a while."""

    def __init__(self, cluster_key: str) -> None:
        self._cluster_key = cluster_key
        self._opened: dict[str, dict[str, Any] | None] = {}  # by the sealed text

    def keep(self, connections: Iterable[SealedConnection]) -> None:
        """Forgets all others."""
        sealed = {each.sealed for each in connections}
        self._opened = {key: fields for key, fields in self._opened.items() if key in sealed}

    def fields(
        self,
        element: ElementSpec,
        operator: type[ConnectedOperator],
        connections: Mapping[str, SealedConnection],
    ) -> tuple[dict[str, Any] | None, str]:
        """Returns the fields of the connection that an element names, or why there are none. An operator that
        needs no connection has neither."""
        if operator.connection is None:
            return None, ""
        name, kind = str(element.params.get("connection") or ""), operator.connection.kind
        found = connections.get(name)
        if found is None:
            return None, f'There is no connection "{name}". An admin makes it under Connections'
        if found.kind != kind:
            return None, f'The connection "{name}" is of another kind ({found.kind}); {kind} is needed'
        if not found.sealed:
            return None, (
                f'The secrets of the connection "{name}" cannot be opened, since Fogline has another '
                "FOGLINE_SECRET_KEY now. An admin enters them again under Connections"
            )
        if found.sealed not in self._opened:
            try:
                fields = json.loads(opened(found.sealed, self._cluster_key, PURPOSE_SENT))
            except SealBroken:
                fields = None
            self._opened[found.sealed] = fields
        fields = self._opened[found.sealed]
        if fields is None:
            return None, f'The connection "{name}" cannot be opened: this node has another cluster key'
        return fields, ""
