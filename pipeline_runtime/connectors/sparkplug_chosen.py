"""The metrics of Sparkplug B that columns hold, and who has named them. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

SOURCES_MAX = 50_000
"""How many edge nodes and devices are known by what they have named."""


class ChosenMetrics:
    """It outlives connections, so that a name that changes meanwhile is noticed, too."""

    def __init__(self, names: Collection[str] = ()) -> None:
        """Without names all metrics are chosen."""
        self.names = frozenset(names)
        self._named: dict[tuple[str, str, str], frozenset[str]] = {}

    def of(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the chosen ones of these."""
        if not self.names:
            return dict(values)
        return {name: value for name, value in values.items() if name in self.names}

    def gone(self, source: tuple[str, str, str], named: Collection[str]) -> frozenset[str]:
        """Notes what a birth names. Returns the chosen ones that the birth before it has named, and this one
        does not. `source`: the group, the edge node, and the device or an empty text."""
        now = self.names.intersection(named)
        before = self._named.get(source, frozenset())
        if source in self._named or len(self._named) < SOURCES_MAX:
            self._named[source] = now
        return before - now
