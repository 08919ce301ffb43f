"""Sets how often Python looks for cycles of unused objects, and which objects it looks through.

By default it looks after every 700 new objects, now and then through all objects, and PySpark has it look
after each task as well. A batch makes thousands of objects without cycles. To look through all long-lived
objects for their sake took two thirds of the time in which the records of a batch are made.
"""

from __future__ import annotations

import gc

_NEW_OBJECTS, _YOUNG, _MIDDLE = 10_000, 10, 10  # the last two are Python's own: closed clients are cycles


def settle() -> None:
    """Exempt all that has been imported so far. Forks share its memory as long as nobody writes into it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, _YOUNG, _MIDDLE)


def freeze(*, dropped: bool) -> None:
    """Exempt what this process of Spark's has connected to so far.

    `dropped`: something that was exempt before is no longer in use, so all objects are looked through once.
    To look through those of the zygote writes into every page that its forks share.
    """
    if dropped:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
