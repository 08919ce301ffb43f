"""Which cases of a test the build server runs; `make check-full` runs them all."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def chosen(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Returns the cases as parameters of one value. Those that are not in `always` have the mark `full`."""
    cases = list(cases)
    assert all(case in cases for case in always), "a case that does not exist was chosen"
    return [case if case in always else pytest.param(case, marks=pytest.mark.full) for case in cases]
