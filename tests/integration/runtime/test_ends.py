"""A finite recording: its end closes the last windows, and says so down the line."""

from __future__ import annotations

import csv
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from pipeline_runtime.journal.positions import read_positions
from pipeline_runtime.journal.records import ENDED
from pipeline_runtime.kafka.admin import Topic, ensure_topics
from pipeline_runtime.kafka.clients import KafkaSettings
from pipeline_runtime.model.desired import ClaimOrder, starts_of
from pipeline_runtime.model.ids import Epoch
from tests.directing import tell
from tests.integration.runtime.engine import Deployed, Element, Node, owning, wait_for_status
from tests.tables import as_table

pytestmark = pytest.mark.integration

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
ROWS = 250
COLUMNS = {"at": "string", "k": "string", "v": "integer"}


def recording(files: dict[str, Path], directory: Path) -> tuple[str, list[tuple[datetime, str, int]]]:
    """An uploaded file of 250 rows, 100 ms apart, and what is in it."""
    rows = [(START + timedelta(milliseconds=100 * n), "ab"[n % 2], n * n % 97) for n in range(ROWS)]
    path = directory / "recording"
    text = "at,k,v\n" + "".join(f"{at.isoformat()},{key},{value}\n" for at, key, value in rows)
    as_table(text, path, COLUMNS, time="at")
    reference = f"upload:{uuid4().hex}"
    files[reference] = path
    return reference, rows


def elements(reference: str, *, condition: str | None = None) -> list[Element]:
    replay = {
        "path": reference,
        "rate": 400,
        "restamp": False,
        "table": {
            "columns": [{"name": n, "type": t} for n, t in COLUMNS.items()],
            "time": True,
            "rows": ROWS,
        },
    }
    aggregates = [{"function": "sum", "column": "v", "as": "total"}, {"function": "count", "as": "n"}]
    chain: list[Element] = [{"id": "replay", "type": "csv-replay", "params": replay}]
    before = "replay"
    if condition is not None:
        params = {"condition": condition}
        chain.append({"id": "keep", "type": "filter", "inputs": {"in": "replay"}, "params": params})
        before = "keep"
    return [
        *chain,
        {
            "id": "sums",
            "type": "window-aggregate",
            "inputs": {"in": before},
            "params": {"size_s": 2, "keys": ["k"], "aggregates": aggregates},
        },
        {
            "id": "file",
            "type": "csv-sink",
            "inputs": {"in": "sums"},
            "params": {"columns": ["window_start", "k", "total", "n"]},
        },
    ]


def oracle(rows: list[tuple[datetime, str, int]]) -> set[tuple[str, str, int, int]]:
    windows: dict[tuple[datetime, str], list[int]] = defaultdict(list)
    for at, key, value in rows:
        begin = at - timedelta(seconds=at.second % 2, microseconds=at.microsecond)
        windows[begin, key].append(value)
    return {
        (begin.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), key, sum(found), len(found))
        for (begin, key), found in windows.items()
    }


def written(path: Path) -> list[tuple[str, str, int, int]]:
    with path.open(newline="") as file:
        return [
            (row["window_start"], row["k"], int(row["total"]), int(row["n"])) for row in csv.DictReader(file)
        ]


def assert_file_is_oracles(path: Path, rows: list[tuple[datetime, str, int]]) -> None:
    lines = written(path)
    assert len(lines) == len(set(lines))
    assert set(lines) == oracle(rows)


@pytest.mark.parametrize(
    "groups",
    [{}, {"all": ["replay", "sums", "file"]}],
    ids=["three groups", "one group"],
)
def test_the_end_of_a_recording_closes_its_last_windows(
    kafka: str, node: Node, files: dict[str, Path], tmp_path: Path, groups: dict[str, list[str]]
) -> None:
    reference, rows = recording(files, tmp_path)
    deployed = Deployed(kafka, elements(reference), groups, files=[reference])
    replicas = deployed.run(node)
    for replica in replicas.values():
        wait_for_status(replica, lambda status: status.ended, "to end")
    last = "all" if groups else "file"
    path = node.replica_directory(deployed.specs[last]) / "elements" / "file" / "output.csv"
    assert_file_is_oracles(path, rows)
    for group in deployed.specs:
        deployed.assert_journal_lawful(group)


def test_the_end_goes_around_a_filter_that_is_grouped_with_the_windows(
    kafka: str, node: Node, files: dict[str, Path], tmp_path: Path
) -> None:
    reference, rows = recording(files, tmp_path)
    deployed = Deployed(
        kafka, elements(reference, condition="v > 20"), {"middle": ["keep", "sums"]}, files=[reference]
    )
    replicas = deployed.run(node)
    wait_for_status(replicas["file"], lambda status: status.ended, "to end")
    path = node.replica_directory(deployed.specs["file"]) / "elements" / "file" / "output.csv"
    assert_file_is_oracles(path, [row for row in rows if row[2] > 20])


def test_what_has_ended_says_so_after_a_restart(
    kafka: str, node: Node, files: dict[str, Path], tmp_path: Path
) -> None:
    reference, rows = recording(files, tmp_path)
    deployed = Deployed(kafka, elements(reference), {"all": ["replay", "sums", "file"]}, files=[reference])
    [replica] = deployed.run(node).values()
    wait_for_status(replica, lambda status: status.ended, "to end")
    node.stop_all()
    again = node.own(deployed.specs["all"], over=1)
    owning(again)
    wait_for_status(again, lambda status: status.ended, "to know its end")
    path = node.replica_directory(deployed.specs["all"]) / "elements" / "file" / "output.csv"
    assert_file_is_oracles(path, rows)


def test_who_goes_on_behind_an_end_that_another_one_has_read_ends_all_the_same(
    kafka: str, node: Node, files: dict[str, Path], tmp_path: Path
) -> None:
    """As an upgrade orders it that groups elements otherwise: the end itself will not be read again."""
    reference, _ = recording(files, tmp_path)
    deployed = Deployed(kafka, elements(reference, condition="v > 20"), files=[reference])
    replicas = deployed.run(node)
    wait_for_status(replicas["keep"], lambda status: status.ended, "to end")
    positions = read_positions(KafkaSettings(kafka), deployed.specs["keep"].journal)
    [key] = positions[ENDED]
    spec = deployed.specs["keep"].model_copy(update={"group": "keep_2"})
    ensure_topics(KafkaSettings(kafka), [Topic(spec.journal, "journal", 1)])

    heir = node.start(spec)
    starts = starts_of({key: positions[key], ENDED: [key]})
    tell(heir, order=ClaimOrder(id="grouped-otherwise", over=Epoch(0), starts=starts))
    wait_for_status(heir, lambda status: status.ended, "to know that its input has ended")
