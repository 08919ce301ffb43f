"""Tests what a node process does before it runs."""

from __future__ import annotations

import resource
import subprocess
import sys

PROGRAM = """
import resource, sys
from workers.node import __main__ as node, process

class Node:
    def __init__(self, identity):
        pass

    def run(self):
        print(*resource.getrlimit(resource.RLIMIT_NOFILE))
        return 0

process.NodeProcess = Node
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
sys.argv = ["node", "--name", "edge-a"]
node.main()
"""


def test_a_node_may_have_as_many_files_open_as_the_system_allows() -> None:
    ran = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert ran.stdout.split() == [str(hard), str(hard)], ran.stderr
