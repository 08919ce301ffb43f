"""Keeps memory that a batch has freed in the process, for the next batch.

By default the C library gives it back to the system at once. A batch uses some megabytes in arrays of about
100 KiB. It would get each of their pages from the system again, which fills them with zeros: that took a
third of the time in which records are decoded.
"""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of malloc.h
_KEPT_BYTES = 32 << 20  # glibc takes no larger threshold for what it maps one by one


def keep_freed_memory() -> None:
    """Lets each of malloc's arenas keep up to 32 MiB. Does nothing where the C library has no such setting.

    https://man7.org/linux/man-pages/man3/mallopt.3.html
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
    mallopt(_MMAP_THRESHOLD, _KEPT_BYTES)


def give_back() -> None:
    """Gives the system all memory that is free now, for a process that has no batch to come. Does nothing
    where the C library cannot.

    https://man7.org/linux/man-pages/man3/malloc_trim.3.html
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return
    trim(0)
