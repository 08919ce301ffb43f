"""Free ports for the tests' own services.

Below the range from which the kernel takes the ports of outgoing connections: one of those may take a
port between the moment in which it was found free and the moment in which its service listens on it. For
the same reason each lane (`tests/lanes.py`) has a part of that range for itself: TESTS_PORTS.
"""

from __future__ import annotations

import os
import random
import socket

_FIRST, _LAST = (int(port) for port in os.environ.get("TESTS_PORTS", "20000-32000").split("-"))
_TRIES = 1000


def free_ports(count: int) -> list[int]:
    """Different ports that nobody listens on now."""
    ports: set[int] = set()
    while len(ports) < count:
        ports.add(free_block(1))
    return list(ports)


def free_block(count: int) -> int:
    """The first of `count` neighbouring free ports."""
    for _ in range(_TRIES):
        first = random.randrange(_FIRST, _LAST - count)
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise AssertionError(f"no {count} neighbouring free ports from {_FIRST} to {_LAST}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
