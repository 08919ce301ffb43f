"""Runs a generator one step ahead, in a thread."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar, cast

Item = TypeVar("Item")


def ahead(items: Generator[Item, None, None]) -> Generator[Item, None, None]:
    """Yields the same items. While the caller uses one item, a thread makes the next one, and no more than
    that one.

    An error of `items` is raised here. When the caller ends early, `items` is closed.
    """
    end = object()
    with ThreadPoolExecutor(1, "ahead") as thread:
        try:
            made = thread.submit(next, items, end)
            while (item := made.result()) is not end:
                made = thread.submit(next, items, end)
                yield cast(Item, item)
        finally:
            thread.submit(items.close).result()
