"""Opens the sealed fields of the connections that a node gets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pipeline_runtime.model.connectors import PURPOSE_SENT, SealedConnection
from pipeline_runtime.model.spec import ElementSpec
from pipeline_runtime.operators.connections import ConnectionFields
from pipeline_runtime.sealing import SealBroken, opened


class NotOpened(Exception):
    """A connection is of no use. The message says why, as a sentence without its full stop."""


class SealedFields:
    """For one thread at a time. What was opened is kept in memory, since opening takes a while."""

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
        kinds: Mapping[str, type[ConnectionFields]],
        connections: Mapping[str, SealedConnection],
    ) -> tuple[dict[str, dict[str, Any]], str]:
        """Returns the fields of the connections that an element names in the parameters `kinds`, by
        parameter, or why there are none. A parameter that the element leaves out has none."""
        found = {}
        for parameter, kind in kinds.items():
            name = element.params.get(parameter)
            if name is None:
                continue
            try:
                found[parameter] = self.of(str(name), kind, connections)
            except NotOpened as why:
                return {}, str(why)
        return found, ""

    def of(
        self, name: str, kind: type[ConnectionFields], connections: Mapping[str, SealedConnection]
    ) -> dict[str, Any]:
        """Returns the fields of the connection of that name. Raises NotOpened."""
        found = connections.get(name)
        if found is None:
            raise NotOpened(f'There is no connection "{name}". An admin makes it under Connections')
        if found.kind != kind.kind:
            raise NotOpened(
                f'The connection "{name}" is of another kind ({found.kind}); {kind.kind} is needed'
            )
        if not found.sealed:
            raise NotOpened(
                f'The secrets of the connection "{name}" cannot be opened, since Fogline has another '
                "FOGLINE_SECRET_KEY now. An admin enters them again under Connections"
            )
        if found.sealed not in self._opened:
            try:
                fields = json.loads(opened(found.sealed, self._cluster_key, PURPOSE_SENT))
            except SealBroken:
                fields = None
            self._opened[found.sealed] = fields
        opened_fields = self._opened[found.sealed]
        if opened_fields is None:
            raise NotOpened(f'The connection "{name}" cannot be opened: this node has another cluster key')
        return opened_fields
