"""What PySpark's garbage collection after every task shall not look through."""

from __future__ import annotations

import gc


def freeze(*, dropped: bool) -> None:
    """All that is imported and connected by now is here to stay; to look through it takes 40 ms a task.

    `dropped`: something of before is not. Else what the zygote has frozen stays so: to look through that
    writes into each of the pages that its forks share.
    """
    if dropped:
        gc.unfreeze()
    gc.collect()
    gc.freeze()
