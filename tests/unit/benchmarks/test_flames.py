"""The drawing of flame graphs: which function called which, and how much of the time each has."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from tests.benchmarks.flames import drawn, tree

_STACKS = {
    "_bootstrap (threading.py);commit (pipeline_runtime/a.py);send <x> (kafka/b.py)": 30,
    "_bootstrap (threading.py);commit (pipeline_runtime/a.py)": 20,
    "read (pipeline_runtime/c.py)": 49,
    "seldom (pipeline_runtime/d.py);deeper (pipeline_runtime/d.py)": 1,
    "never_seen (pipeline_runtime/d.py)": 0,
    "run (pipeline_runtime/a.py);Condition.wait (threading.py)": 900,
}


def test_a_function_has_the_samples_of_all_that_it_calls() -> None:
    root = tree(_STACKS, "task")
    assert root.samples == 100
    commit = root.called["commit (pipeline_runtime/a.py)"]
    assert (commit.samples, commit.called["send <x> (kafka/b.py)"].samples) == (50, 30)
    assert not root.called.keys() & {"_bootstrap (threading.py)", "run (pipeline_runtime/a.py)"}


def test_a_frame_is_as_wide_as_its_share_and_lies_below_the_one_that_calls_it() -> None:
    picture = ElementTree.fromstring(drawn(tree(_STACKS, "task")))
    space = "{http://www.w3.org/2000/svg}"
    boxes = {
        group.findtext(f"{space}title"): group.find(f"{space}rect").attrib
        for group in picture.findall(f"{space}g")
    }
    commit, send = boxes["commit (pipeline_runtime/a.py): 50.0%"], boxes["send <x> (kafka/b.py): 30.0%"]
    assert (commit["x"], commit["y"], commit["width"]) == ("0.0", "17", "599.5")
    assert (send["x"], send["y"], send["width"]) == ("0.0", "34", "359.5")
    assert boxes["read (pipeline_runtime/c.py): 49.0%"]["x"] == "600.0"
    assert not any(title and re.match("never_seen", title) for title in boxes)
