"""Draws the phases of handovers and operations from their tables: `make reference`.

It rewrites the drawings in docs/explanation, which stand between two markers, and the lists in the
docstrings of handovers/steps.py and operations/steps.py, which stand under a line of their own.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from pipeline_runtime.handover import phases as handover
from workers.control.operations import phases as operation
from workers.control.phases import P, Ways

Name = TypeVar("Name", bound=str)

ROOT = Path(__file__).parents[2]
OPENING = "<!-- phases of {name}: made by `make reference` -->"
CLOSING = "<!-- end of the phases of {name} -->"
ABOVE_A_LIST = "Which phase may follow which (made by `make reference`):"


def drawn() -> Iterator[tuple[Path, str]]:
    """Yields each file that has drawings, with the text that it should have."""
    docs, control = ROOT / "docs" / "explanation", ROOT / "workers" / "control"
    handovers = {"handovers": handover_diagram()}
    operations = {kind: operation_diagram(kind) for kind in operation.NEXT}
    for page, diagrams in ((docs / "handover.md", handovers), (docs / "operations.md", operations)):
        text = page.read_text(encoding="utf-8")
        for name, diagram in diagrams.items():
            text = _between_markers(text, name, diagram)
        yield page, text
    finish = {strategy: phases[-1] for strategy, phases in handover.PHASES.items()}
    done = {kind: phases[-1] for kind, phases in operation.DONE_AFTER.items()}
    lists = {"handovers": list_of(handover.NEXT, finish), "operations": list_of(operation.NEXT, done)}
    for package, made in lists.items():
        code = control / package / "steps.py"
        yield code, _under_its_line(code.read_text(encoding="utf-8"), made)


def handover_diagram() -> str:
    """Returns one Mermaid diagram of all strategies. An arrow names its strategies if others differ there."""
    labels: dict[tuple[str, str], dict[str, list[str]]] = {}  # (from, to) -> when -> strategies
    for strategy, ways in handover.NEXT.items():
        for before, following in ways.items():
            for after, when in following.items():
                labels.setdefault((before, after), {}).setdefault(when, []).append(strategy)
    arrows: list[tuple[str, str, str]] = []
    for (origin, target), by_reason in labels.items():
        passing = [strategy for strategy, ways in handover.NEXT.items() if origin in ways]
        for when, strategies in by_reason.items():
            who = "" if strategies == passing else f" ({', '.join(strategies)})"
            arrows.append((origin, target, when + who))
    last = sorted({phases[-1] for phases in handover.PHASES.values()})
    return _mermaid([*arrows, *((phase, "[*]", "done") for phase in last)])


def operation_diagram(kind: operation.Kind) -> str:
    """Returns the Mermaid diagram of one kind of operation."""
    ways, done = operation.NEXT[kind], operation.DONE_AFTER[kind]
    arrows = [(before, after, when) for before in ways for after, when in ways[before].items()]
    ends = [(phase, "[*]", "done") for phase in done]
    last = {after for _, after, _ in arrows} - set(ways)
    return _mermaid([*arrows, *ends, *((phase, "[*]", "failed") for phase in sorted(last - set(done)))])


def list_of(tables: Mapping[Name, Ways[P]], last: Mapping[Name, P]) -> str:
    """Returns for each strategy or kind its whole way, then what else may follow which phase.

    `last`: the phase with which the whole way is done.
    """
    width = max(len(name) for name in tables) + 2
    lines: list[str] = []
    for name, ways in tables.items():
        way, rest = _way(ways, last[name])
        chains = [*_wrapped(way, 105 - width), *(f"{each} -> {', '.join(rest[each])}" for each in rest)]
        heads = [name, *[""] * (len(chains) - 1)]
        lines += [f"    {head:{width}}{chain}" for head, chain in zip(heads, chains, strict=True)]
    return "\n".join(lines)


def _way(ways: Ways[P], last: P) -> tuple[list[str], dict[str, list[str]]]:
    """Returns the way to `last` that takes at each phase the first arrow left, and all arrows not taken."""
    rest: dict[str, list[str]] = {before: list(following) for before, following in ways.items()}
    way: list[str] = [next(iter(ways))]
    while way[-1] != last:
        way.append(rest[way[-1]].pop(0))
    return [*way, "done"], {before: following for before, following in rest.items() if following}


def _wrapped(way: list[str], width: int) -> list[str]:
    """Returns the lines of a way, none longer than `width`."""
    return textwrap.wrap(" -> ".join(way), width, subsequent_indent="  ", break_on_hyphens=False)


def _mermaid(arrows: Iterable[tuple[str, str, str]]) -> str:
    lines = [f"  {before} --> {after}: {label}" for before, after, label in arrows]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"])


def _between_markers(text: str, name: str, diagram: str) -> str:
    opening, closing = OPENING.format(name=name), CLOSING.format(name=name)
    begin, end = text.index(opening) + len(opening), text.index(closing)
    return f"{text[:begin]}\n{diagram}\n{text[end:]}"


def _under_its_line(code: str, made: str) -> str:
    """Returns `code` with the indented lines under ABOVE_A_LIST replaced."""
    found = re.search(rf"^{re.escape(ABOVE_A_LIST)}\n\n((?:    .*\n)*)", code, re.MULTILINE)
    assert found is not None, f"no line says {ABOVE_A_LIST}"
    return f"{code[: found.start(1)]}{made}\n{code[found.end(1) :]}"


if __name__ == "__main__":
    for path, text in drawn():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path}")
