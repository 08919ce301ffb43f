from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from threading import Event

import pytest

from webapp.imports.ahead import ahead

WAIT_S = 30


def test_items_come_in_order_and_one_is_made_while_another_is_used() -> None:
    begun = [Event() for _ in range(4)]

    def made() -> Generator[int, None, None]:
        for number, event in enumerate(begun):
            event.set()
            yield number

    got = []
    for number in ahead(made()):
        got.append(number)
        if number < 3:
            assert begun[number + 1].wait(WAIT_S)
        if number < 2:
            assert not begun[number + 2].is_set()
    assert got == [0, 1, 2, 3]


def test_what_goes_wrong_is_raised_behind_the_items_before_it() -> None:
    def made() -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    items = ahead(made())
    assert next(items) == 1
    with pytest.raises(ValueError, match="broken"):
        next(items)


def test_who_ends_early_leaves_nothing_open() -> None:
    closed = Event()

    def made() -> Generator[int, None, None]:
        try:
            yield from range(1_000)
        finally:
            closed.set()

    with closing(ahead(made())) as items:
        assert next(items) == 0
    assert closed.is_set()
