"""A group that sums a steady stream into a file and a topic, and what must be in both of them at the end."""

from __future__ import annotations

from pipeline_runtime.replica.replica import Replica
from tests.integration.runtime.documents import (
    Row,
    Stream,
    by_key,
    events,
    file,
    lines,
    out,
    running_sums,
)
from tests.integration.runtime.engine import (
    Deployed,
    Element,
    Node,
    create_topic,
    produce,
    values,
    wait_for_status,
)
from tests.waiting import wait_until

WINDOWS: Element = {
    "id": "sums",
    "type": "window-aggregate",
    "inputs": {"in": "events"},
    "params": {
        "size_s": 1,
        "keys": ["k"],
        "aggregates": [{"function": "sum", "column": "v", "as": "v"}, {"function": "count", "as": "n"}],
    },
}


class SummingGroup:
    """`stateful`: `sums`, whose followers may coalesce, or WINDOWS, which are followed exactly."""

    def __init__(self, kafka: str, stateful: Element) -> None:
        self._kafka = kafka
        self._stateful = stateful
        self._source, self._target = create_topic(kafka), create_topic(kafka)
        members = ["events", "sums", "file", "out"]
        elements = [events(self._source), stateful, file(), out(self._target)]
        self.deployed = Deployed(kafka, elements, {"all": members})
        self.spec = self.deployed.specs["all"]
        self._stream = Stream(kafka, self._source)

    def begin(self, node: Node) -> Replica:
        """Under way: its owner."""
        self._stream.start()
        owner = node.own(self.spec)
        wait_for_status(owner, lambda status: status.seq >= 5, "to reach seq 5")
        return owner

    def finish(self, *nodes: Node) -> None:
        """Nothing lost, nothing twice, in the topic and in each node's file; a lawful journal."""
        rows = self._stream.finish()
        if self._stateful is WINDOWS:
            self._assert_windows(rows)
            expected = by_key(values(self._kafka, self._target))
        else:
            expected = running_sums(rows)
            count = sum(len(made) for made in expected.values())
            wait_until(lambda: len(values(self._kafka, self._target)) >= count, "all rows")
        assert by_key(values(self._kafka, self._target)) == expected
        for node in nodes:
            path = node.replica_directory(self.spec) / "elements" / "file" / "out.csv"
            wait_until(lambda path=path: by_key(lines(path)) == expected, f"the whole file {path}")
        self.deployed.assert_journal_lawful("all")

    def _assert_windows(self, rows: list[Row]) -> None:
        """Every row is in exactly one window, and every window was given once."""

        def all_closed() -> bool:
            # A window closes with the batch behind the one that moved the watermark.
            produce(self._kafka, self._source, [{"k": "end", "v": 1}], time_ms=lambda _: in_ten_minutes)
            return sum(row["n"] for row in values(self._kafka, self._target)) >= len(rows)

        in_ten_minutes = (
            wait_until(lambda: self.deployed.commits("all")[-1].boundary.batch_time_ms, "") + 600_000
        )
        wait_until(all_closed, "all windows")
        found = values(self._kafka, self._target)
        assert sum(row["n"] for row in found) == len(rows)
        assert sum(row["v"] for row in found) == sum(row["v"] for row in rows)
        windows = [(row["window_start"], row["k"]) for row in found]
        assert len(windows) == len(set(windows))
