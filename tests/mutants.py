"""`make mutants`: the code with one mistake at a time, each of which some test must find.

Each mistake is made in a copy of the project, never here. The tests must pass there without it first.
Exit code 1 when a mutant survives, 2 when the list below does not fit the code any more.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chosen import FULL

ROOT = Path(__file__).resolve().parents[1]
_LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".fogline", "build", "node_modules", "dist", "__pycache__", ".*_cache", ".hypothesis"
)
_FAILED = 1  # pytest's exit code: tests ran, and some failed


class DoesNotFit(Exception):
    """The list below and the code or its tests disagree."""


@dataclass(frozen=True)
class Mutant:
    """`old`: a text that stands in `file` once; `tests`: pytest's ids of those that must find `new` out."""

    name: str
    mistake: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def of(self, source: str) -> str:
        """The source with the mistake."""
        if (found := source.count(self.old)) != 1:
            raise DoesNotFit(f"{self.name}: {self.file} has {found} times, not once:\n{self.old}")
        return source.replace(self.old, self.new)


MUTANTS = (
    Mutant(
        "batch planner",
        "the gate grants a batch although the group was given away meanwhile",
        "pipeline_runtime/replica/batch_planner.py",
        "if permit is None or state.draining",
        "if state.draining",
        ("tests/unit/replica/test_batch_planner.py",),
    ),
    Mutant(
        "running ahead",
        "a batch is committed although the one before it has come to nothing",
        "pipeline_runtime/replica/batches.py",
        "            if self._state.failure is not None:",
        "            if False:",
        ("tests/unit/replica/test_running_ahead.py",),
    ),
    Mutant(
        "running ahead",
        "a batch does not wait until the one before it is committed",
        "pipeline_runtime/replica/batches.py",
        "            self._commit.join()",
        "            pass",
        ("tests/unit/replica/test_running_ahead.py",),
    ),
    Mutant(
        "running ahead",
        "the next batch begins with the state before the last one",
        "pipeline_runtime/checkpoint/keyed_state.py",
        "            before = self._sealed.states\n",
        "            before: dict[str | None, bytes | None] = {}\n",
        ("tests/unit/replica/test_running_ahead.py", "tests/unit/checkpoint/test_keyed_state.py"),
    ),
    Mutant(
        "running ahead",
        "what a batch that came to nothing has processed counts for the next run",
        "pipeline_runtime/replica/batch_planner.py",
        "            self._ended = self._counted\n",
        "",
        ("tests/unit/replica/test_running_ahead.py",),
    ),
    Mutant(
        "whole batches",
        "what was read beyond a range is not there for the next one",
        "pipeline_runtime/kafka/incoming.py",
        "            self._left = behind",
        "            pass",
        ("tests/unit/kafka/test_incoming.py",),
    ),
    Mutant(
        "whole batches",
        "a batch whose records are not as long as they say is taken",
        "pipeline_runtime/kafka/incoming.py",
        "    if not np.array_equal(fields.at, ends):",
        "    if False:",
        ("tests/unit/kafka/test_incoming.py",),
    ),
    Mutant(
        "reading ahead",
        "a batch reads a partition while the thread that reads ahead still does",
        "pipeline_runtime/batch/reading_ahead.py",
        "            self._changed.wait_for(lambda: not self._is_reading)\n            self._raise()",
        "            self._raise()",
        ("tests/unit/batch/test_reading_ahead.py",),
    ),
    Mutant(
        "reading ahead",
        "whoever stops the thread closes a reader that it still uses",
        "pipeline_runtime/batch/reading_ahead.py",
        "            self._changed.wait_for(lambda: not self._is_reading)\n            self._failure = None",
        "            self._failure = None",
        ("tests/unit/batch/test_reading_ahead.py",),
    ),
    Mutant(
        "reading ahead",
        "a batch takes what was read ahead although only a part of its rows is there",
        "pipeline_runtime/batch/portions.py",
        "return len(self._ahead) > 0 and self._ahead[-1][0] >= end",
        "return len(self._ahead) > 0",
        ("tests/unit/batch/test_reading_ahead.py",),
    ),
    Mutant(
        "reading ahead",
        "a stop is held up by the thread, which waits for rows that nobody waits for",
        "pipeline_runtime/batch/reading_ahead.py",
        "return None if is_there() else reader",
        "return reader",
        ("tests/unit/batch/test_reading_ahead.py",),
    ),
    Mutant(
        "reading ahead",
        "the rows of a topic that was created again pass for those of the one before it",
        "pipeline_runtime/kafka/partition_reader.py",
        '            self._known_id = ""\n',
        "            pass\n",
        ("tests/unit/kafka/test_incoming.py",),
    ),
    Mutant(
        "keyed state",
        "what a batch that came to nothing has left is kept with the next one",
        "pipeline_runtime/replica/batches.py",
        "                self._end.begin()\n",
        "",
        ("tests/unit/replica/test_batch_planner.py",),
    ),
    Mutant(
        "keyed state",
        "the end of a batch is not written with its changes",
        "pipeline_runtime/checkpoint/keyed_state.py",
        "        batch.put(_END, json.dumps(end).encode())\n        with self._batch",
        "        with self._batch",
        ("tests/unit/checkpoint/test_keyed_state.py",),
    ),
    Mutant(
        "tasks",
        "two tasks process rows of one key in the same batch",
        "pipeline_runtime/batch/tasks.py",
        "if self._keys.setdefault(key, task) != task:",
        "if self._keys.setdefault(key, task) is None:",
        ("tests/unit/batch/test_tasks.py",),
    ),
    Mutant(
        "batches",
        "a batch of a task that stayed longer than its query fails the next query",
        "pipeline_runtime/replica/batches.py",
        "            if self._closed:  # another run",
        "            if False:  # another run",
        ("tests/unit/replica/test_batches.py",),
    ),
    Mutant(
        "commit",
        "an owner emits a batch that the journal has already",
        "pipeline_runtime/replica/core.py",
        "commit = view.commits.get(seq)",
        "commit = None if facts.permit is not None else view.commits.get(seq)",
        ("tests/unit/replica/test_batches.py",),
    ),
    Mutant(
        "roles",
        "an owner stays the owner although the journal grants another",
        "pipeline_runtime/replica/roles.py",
        "if permit is None or not is_taken_over(view, permit.epoch) or self._ownership.releasing:",
        "if permit is None or is_taken_over(view, permit.epoch) or self._ownership.releasing:",
        ("tests/unit/replica/test_roles.py",),
    ),
    Mutant(
        "protocol",
        "a claim goes on although somebody was granted since its first read",
        "pipeline_runtime/handover/protocol.py",
        "            if event.granted > granted:\n                return Fencing",
        "            if event.granted < granted:\n                return Fencing",
        ("tests/unit/handover/test_protocol.py",),
    ),
    Mutant(
        "snapshot",
        "a checkpoint takes an offsets/N that has no commits/N",
        "pipeline_runtime/checkpoint/snapshot.py",
        "    batch, end = newest\n",
        '    batch, end = spark_state.batches(spark / "offsets")[-1], newest[1]\n',
        ("tests/unit/checkpoint/test_snapshot.py",),
    ),
    Mutant(
        "retention",
        "the newest whole checkpoint is dropped, since damaged ones are newer",
        "pipeline_runtime/checkpoint/database.py",
        "whole = [manifest for manifest in newest_first if not absent(state.family, manifest.chunks)]",
        "whole = newest_first",
        ("tests/unit/checkpoint/test_database.py", "tests/unit/checkpoint/test_retention.py"),
    ),
    Mutant(
        "late rows",
        "a row that no window takes is dropped without a word",
        "pipeline_runtime/operators/window_aggregate.py",
        "return with_rejects(emitted, rejected, too_late(rows, names, newest, self.delay_us, of.late))",
        "return with_rejects(emitted, rejected)",
        ("tests/unit/operators/test_window_aggregate.py",),
    ),
    Mutant(
        "windows",
        "a row counts although its window was emitted before it came",
        "pipeline_runtime/operators/window_aggregate.py",
        "in_time=first_start_ + size > complete,",
        "in_time=last_start + size > complete,",
        ("tests/unit/operators/test_window_aggregate.py",),
    ),
    Mutant(
        "release, told",
        "a far successor takes a release for the journal's next word before it has read what lies before it",
        "pipeline_runtime/replica/following.py",
        "            if (release.epoch, commit.seq) == (view.granted, view.last_seq + 1):\n",
        "            if release.epoch == view.granted:\n",
        ("tests/unit/replica/test_following.py",),
    ),
    Mutant(
        "keyed state, forgotten",
        "what is kept no more is still there",
        "pipeline_runtime/checkpoint/keyed_state.py",
        "                batch.delete(place)\n",
        "                pass\n",
        ("tests/unit/checkpoint/test_keyed_state.py",),
    ),
    Mutant(
        "expressions",
        "an integer that is too large wraps around",
        "pipeline_runtime/operators/expressions/calls.py",
        "return _CHECKED[operator](left, right)",
        "return _NUMBERS[operator](left, right)",
        ("tests/unit/operators/test_expression_values.py",),
    ),
    Mutant(
        "model",
        "a model reads other files of the node that runs it",
        "pipeline_runtime/operators/onnx_file.py",
        "        if _is_elsewhere(part):\n",
        "        if _is_elsewhere(part) and not number:\n",
        (
            "tests/unit/operators/test_model.py::test_a_model_that_reads_other_files_is_refused_before_it_runs",
        ),
    ),
    Mutant(
        "silence",
        "nodes count as down although nobody could have heard them",
        "workers/control/reports/detector.py",
        '        return Verdict(blind="Redis does not answer")\n',
        "        hearing_since_ms = 0\n",
        ("tests/unit/workers/test_detector.py",),
    ),
    Mutant(
        "draft conflict",
        "a draft that was overtaken replaces the newer one",
        "webapp/pipelines/actions.py",
        "    if pipeline.draft_revision != revision:\n",
        "    if pipeline.draft_revision < revision:\n",
        ("tests/contract/web/test_pipelines.py",),
    ),
    Mutant(
        "links of walls",
        "a link opens every wall",
        "webapp/walls/links.py",
        "    if link.wall_id != wall:",
        "    if False:",
        ("tests/contract/web/test_wall_links.py::test_a_link_shows_its_wall_and_names_nobody",),
    ),
    Mutant(
        "histories of walls",
        "a row that comes late takes the place of the newest one",
        "webapp/walls/history.py",
        "        if point.at_ms >= self.last.at_ms:",
        "        if True:",
        ("tests/unit/web/test_wall_history.py",),
    ),
)


def copied(into: Path) -> Path:
    """The project as it is now, also what is not committed, without what was built or installed."""
    return Path(shutil.copytree(ROOT, into / "fogline", ignore=_LEFT_OUT, symlinks=True))


def run(project: Path, tests: tuple[str, ...]) -> tuple[int, str]:
    """pytest's exit code and its output, up to the first failure."""
    environ = {**os.environ, "PYTHONPATH": str(project), "PYTHONDONTWRITEBYTECODE": "1", FULL: "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--tb=no", "-p", "no:cacheprovider", *tests],
        cwd=project, env=environ, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def caught_by(project: Path, mutant: Mutant) -> str | None:
    """Returns the first test that finds the mistake, or None if the mutant survives."""
    path = project / mutant.file
    right = path.read_text()
    path.write_text(mutant.of(right))
    try:
        code, output = run(project, mutant.tests)
    finally:
        path.write_text(right)
    if code == 0:
        return None
    said = [line for line in output.splitlines() if line.startswith("FAILED ")]
    found = [line.removeprefix("FAILED ").partition(" - ")[0] for line in said]
    if code != _FAILED or not found:
        raise DoesNotFit(f"{mutant.name}: its tests did not fail, they broke:\n{output}")
    return found[0]


def table(rows: list[tuple[Mutant, str | None, float]]) -> str:
    lines = ["| mutant | mistake | caught by | s |", "|---|---|---|---|"]
    lines += [
        f"| {mutant.name} | {mutant.mistake} | {test or '**SURVIVES**'} | {seconds:.0f} |"
        for mutant, test, seconds in rows
    ]
    return "\n".join(lines)


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="fogline-mutants-") as directory:
        project = copied(Path(directory))
        for mutant in MUTANTS:
            mutant.of((project / mutant.file).read_text())
        code, output = run(project, tuple(dict.fromkeys(test for each in MUTANTS for test in each.tests)))
        if code != 0:
            raise DoesNotFit(f"the tests fail without any mistake:\n{output}")
        rows = []
        for mutant in MUTANTS:
            begun = time.monotonic()
            test = caught_by(project, mutant)
            rows.append((mutant, test, time.monotonic() - begun))
            print(f"{mutant.name}: {test or 'SURVIVES'}", flush=True)
    print(table(rows))
    return 1 if any(test is None for _, test, _ in rows) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DoesNotFit as error:
        print(error, file=sys.stderr)
        sys.exit(2)
