"""Tells a replica one thing, where control tells it all at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipeline_runtime.replica.replica import Replica


def tell(replica: Replica, **changes: Any) -> None:
    """`changes`: of its Directive; the rest stays as it was told last."""
    replica.direct(replace(replica.directive, **changes))
