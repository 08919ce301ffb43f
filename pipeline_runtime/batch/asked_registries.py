"""Gives tasks the schemas of registries. The node's own process asks the registries, because only it has the
secrets."""

from __future__ import annotations

import threading
from typing import TypeVar

from pipeline_runtime.batch.gate_client import GateClient
from pipeline_runtime.batch.gate_messages import NumberOf, Request, SchemaOf
from pipeline_runtime.formats.schema_registry import RegisteredSchema, SchemaRegistryError

A = TypeVar("A")


class AskedRegistries:
    """Implements formats.schema_registry.Registries by a connection to the gate of its own. So it may be
    asked by any thread, also while the task waits for the gate."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._client: GateClient | None = None

    def __call__(self, name: str) -> _AskedRegistry:
        return _AskedRegistry(self, name)

    def ask(self, request: Request[A | str]) -> A:
        """Raises SchemaRegistryError, GateClosed."""
        with self._lock:
            if self._client is None:
                self._client = GateClient(self._address)
            answer = self._client.ask(request)
        if isinstance(answer, str):
            raise SchemaRegistryError(answer)
        return answer

    def close(self) -> None:
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class _AskedRegistry:
    """Implements formats.schema_registry.Registry."""

    def __init__(self, registries: AskedRegistries, name: str) -> None:
        self._registries = registries
        self._name = name

    def schema(self, number: int) -> RegisteredSchema:
        return self._registries.ask(SchemaOf(self._name, number))

    def number(self, subject: str, schema: str) -> int:
        return self._registries.ask(NumberOf(self._name, subject, schema))
