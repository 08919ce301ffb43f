"""Draws flame graphs of the time that a task and its agent spend at full load.

    make flames            WORK=keyed make flames

Runs one work of `peers/works.py` (map) on Fogline over events that are in its topic already, ROUNDS
times, and samples both processes by py-spy behind the warm-up. Writes docs/images/flame-agent.svg and
flame-task.svg, or, where INTO says so, into another folder. A frame is a Python function with all that
it calls in C; time in which a thread waits is left out. This program is a part of the agent's process:
it waits, and is told of each batch.
"""

from __future__ import annotations

import html
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from uuid import uuid4

import psutil

from pipeline_runtime.kafka.admin import Topic, ensure_topics
from tests.benchmarks.bench_throughput import BATCH_ROWS, PACE
from tests.benchmarks.harness import QUICK, Node, log, machine, plan, running_node, start_owner, wait_for
from tests.benchmarks.load import produce_up_front
from tests.benchmarks.peers import user_operator
from tests.benchmarks.peers.environment import environment
from tests.benchmarks.peers.works import WORKS

WORK = os.environ.get("WORK", "map")
COUNT = 300_000 if QUICK else 1_500_000
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "4"))
INTO = Path(os.environ.get("INTO", "docs/images"))
WARM = 4 * BATCH_ROWS
SECONDS = 1 if QUICK else 2  # of sampling in each round
SAMPLES_PER_S = 200
_BUSY_LOOK_S = 0.3

_WIDTH, _HEIGHT, _LETTER = 1200, 17, 6.2
_LEAST = 0.005  # narrower frames are left out, with all that they call
_COLOURS = {"pipeline_runtime/": "#8fcfc8", "tests/": "#d4d4d8", "": "#f3cf9b"}
_OURS = "pipeline_runtime/"
# py-spy leaves out threads that wait, but on a busy machine not all of them.
_WAITING = frozenset(
    ("wait", "_wait", "select", "accept", "readinto", "recv", "recv_into", "sleep", "acquire", "_worker")
)


@dataclass
class Frame:
    """A function as called from those above it. `samples`: those in it and in what it calls."""

    name: str
    samples: int = 0
    called: dict[str, Frame] = field(default_factory=dict)

    def add(self, stack: list[str], samples: int) -> None:
        self.samples += samples
        if stack:
            self.called.setdefault(stack[0], Frame(stack[0])).add(stack[1:], samples)


def tree(stacks: Mapping[str, int], title: str) -> Frame:
    """`stacks`: functions from the outermost on, with ";" between, and in how many samples they were seen.
    Samples that wait are left out, and what calls the first function of Fogline."""
    root = Frame(title)
    for text, samples in stacks.items():
        frames = text.split(";")
        if _function(frames[-1]).rpartition(".")[2] in _WAITING:
            continue
        first = next((number for number, frame in enumerate(frames) if _OURS in frame), 0)
        root.add(frames[first:], samples)
    return root


def _function(frame: str) -> str:
    return frame.partition(" (")[0]


def drawn(root: Frame) -> str:
    """Returns the graph as SVG, the outermost function on top."""
    boxes = list(_boxes(root, root.samples, 0.0, 0))
    height = (max(depth for *_, depth in boxes) + 1) * _HEIGHT
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" font-size="11"'
        ' font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for frame, x, width, depth in boxes:
        share = f"{frame.samples / root.samples:.1%}"
        colour = next(value for folder, value in _COLOURS.items() if folder in frame.name)
        y = depth * _HEIGHT
        box = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{_HEIGHT - 1}" fill="{colour}"'
        title = f"<title>{html.escape(frame.name)}: {share}</title>"
        lines.append(f"<g>{title}<rect {box}/>{_label(frame, share, x, width, y)}</g>")
    return "\n".join([*lines, "</svg>"]) + "\n"


def _label(frame: Frame, share: str, x: float, width: float, y: int) -> str:
    function, file = _function(frame.name), frame.name.partition(" (")[2]
    room = int((width - 6) / _LETTER)
    for text in (f"{function} {share} {file.rstrip(')')}", f"{function} {share}", function):
        if len(text) <= room:
            return f'<text x="{x + 3:.1f}" y="{y + 12}">{html.escape(text)}</text>'
    return ""


def _boxes(frame: Frame, whole: int, x: float, depth: int) -> Iterator[tuple[Frame, float, float, int]]:
    width = _WIDTH * frame.samples / whole
    yield frame, x, max(width - 0.5, 0.5), depth
    for inner in sorted(frame.called.values(), key=lambda each: -each.samples):
        if inner.samples >= _LEAST * whole:
            yield from _boxes(inner, whole, x, depth + 1)
        x += _WIDTH * inner.samples / whole


def busiest_task(node: Node) -> int:
    """The id of the Python process beside this one that takes most CPU."""
    others = [one for one in node.processes()[1:] if "python" in one.name()]
    before = _cpu_s(others)
    sleep(_BUSY_LOOK_S)
    after = _cpu_s(others)
    return max(after, key=lambda pid: after[pid] - before.get(pid, 0.0))


def _cpu_s(processes: list[psutil.Process]) -> dict[int, float]:
    found = {}
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found[process.pid] = sum(process.cpu_times()[:2])
    return found


def sampled(node: Node, topic: str, directory: Path) -> dict[str, Counter[str]]:
    """One round: the stacks of the agent, and of the task."""
    output = f"flames-{uuid4().hex[:8]}"
    ensure_topics(node.kafka, [Topic(output)])
    work = WORKS[WORK]
    [spec] = plan(work.document(topic, output), work.groups, PACE)
    replica = start_owner(node, spec)
    try:
        wait_for(lambda: replica.status().rows_processed_total >= WARM, "the warm-up", [replica])
        pids = {"agent": os.getpid(), "task": busiest_task(node)}
        samplers = {name: _sampler(pid, directory / name) for name, pid in pids.items()}
        for name, sampler in samplers.items():
            if sampler.wait(60) != 0:
                raise RuntimeError(f"py-spy cannot look into the {name}: {sampler.communicate()[1]}")
        if (rows := replica.status().rows_processed_total) >= COUNT:
            log(f"all {rows:,} events were processed before the end of the samples")
    finally:
        replica.stop(20)
    return {name: _stacks(directory / name) for name in pids}


def _sampler(pid: int, output: Path) -> subprocess.Popen[str]:
    command = [
        str(environment("py-spy") / "py-spy"),
        "record",
        "--pid",
        str(pid),
        "--format",
        "raw",
        "--function",
    ]
    command += ["--rate", str(SAMPLES_PER_S), "--duration", str(SECONDS), "--output", str(output)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _stacks(output: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for line in output.read_text().splitlines():
        stack, _, samples = line.rpartition(" ")
        found[stack] += int(samples)
    return found


def main() -> None:
    log(f"{machine()}")
    environment("py-spy")
    stacks = {"agent": Counter[str](), "task": Counter[str]()}
    with running_node(prepare=user_operator.install_in) as node, tempfile.TemporaryDirectory() as directory:
        partitions = WORKS[WORK].partitions
        ensure_topics(node.kafka, [Topic("events", partitions=partitions)])
        produce_up_front(node.kafka, "events", COUNT, partitions)
        for number in range(ROUNDS):
            for name, found in sampled(node, "events", Path(directory)).items():
                stacks[name] += found
            log(f"round {number + 1}: { {name: found.total() for name, found in stacks.items()} } samples")
    INTO.mkdir(parents=True, exist_ok=True)
    for name, found in stacks.items():
        path = INTO / f"flame-{name}.svg"
        path.write_text(drawn(tree(found, f"{name}, {WORK}")))
        log(f"wrote {path}: {path.stat().st_size // 1024} KiB")


if __name__ == "__main__":
    main()
