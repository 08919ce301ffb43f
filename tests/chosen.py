"""Which cases of a test the build server runs; `make check-full` runs them all."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, TypeVar
from zlib import crc32

import pytest

T = TypeVar("T")

FULL = "TESTS_FULL"
"""The environment variable that `make check-full` sets."""
_FEWER = 3


def chosen(cases: Iterable[Any], always: Collection[Any]) -> list[Any]:
    """Returns the cases as parameters of one value. Those that are not in `always` have the mark `full`."""
    cases = list(cases)
    assert all(case in cases for case in always), "a case that does not exist was chosen"
    return [case if case in always else pytest.param(case, marks=pytest.mark.full) for case in cases]


def examples(all_of_them: int) -> int:
    """Returns how many examples a test makes up: on the build server a third."""
    return all_of_them if os.environ.get(FULL) else -(-all_of_them // _FEWER)


def third(cases: Iterable[T], of: str) -> list[T]:
    """Returns the cases that the thing of this name gets: on the build server a third of them. The thing of
    another name gets another third."""
    cases = list(cases)
    return cases if os.environ.get(FULL) else cases[crc32(of.encode()) % _FEWER :: _FEWER]
