"""Makes the page of operators from the operators: `python -m pipeline_runtime.operators.reference`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import yaml

from pipeline_runtime.operators import expressions
from pipeline_runtime.operators.expressions.functions import FUNCTIONS
from pipeline_runtime.operators.expressions.texts import TEXT_MAX
from pipeline_runtime.operators.parameter_tables import LEGEND, parameter_table
from pipeline_runtime.operators.registry import BUILT_IN, default_registry
from pipeline_runtime.operators.sdk import Operator, Port

LINE_MAX = 120
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "operators.md"
_CATEGORIES = {
    "sources": "Sources",
    "transform": "Transform",
    "state": "State",
    "join": "Join and merge",
    "alert": "Alert",
    "sinks": "Sinks and views",
}
_FOLLOW = {
    "coalesced": "a standby may catch up in large steps",
    "exact": "a standby follows batch by batch",
    "none": "not repeatable: moved by stop-and-copy only, restoration is not exactly once",
}


def page() -> str:
    """Returns the whole page, for the built-in library only, since other packages document their own
    operators."""
    operators = [default_registry().get(type_) for type_ in BUILT_IN]
    lines = [
        "# Operators",
        "",
        "This page is made by `make reference` from the operators' docstrings and parameters.",
        *LEGEND.splitlines(),
        "A *standby* is a copy of an element on another node, which is kept ready to take over.",
        "",
    ]
    for category, title in _CATEGORIES.items():
        names = [f"[{o.type}](#{o.type})" for o in operators if o.category == category]
        lines += _wrapped(f"- {title}: {', '.join(names)}")
    lines.append("- [Expressions](#expressions)")
    for operator in operators:
        lines += ["", *_section(operator)]
    return "\n".join([*lines, "", *_expressions()]) + "\n"


def _may_be_left(port: Port) -> str:
    return " (optional)" if port.optional else ""


def _section(operator: type[Operator]) -> Iterator[str]:
    yield f"## {operator.type}"
    yield ""
    yield f"**{operator.title}.** {operator.summary}."
    yield ""
    yield inspect.getdoc(operator) or ""
    yield ""
    ports = ", ".join(f"`{port.name}`{_may_be_left(port)}" for port in operator.inputs) or "none"
    yield f"Inputs: {ports}. {_state(operator)}"
    yield ""
    yield from parameter_table(operator.Params.model_json_schema(by_alias=True))
    yield ""
    yield "```yaml"
    yield yaml.safe_dump({"type": operator.type, "params": operator.example}, sort_keys=False).rstrip()
    yield "```"


def _state(operator: type[Operator]) -> str:
    if not operator.stateful:
        return "Keeps no state."
    otherwise = ", with some parameters otherwise" if operator.follow_depends() else ""
    return f"Keeps state; {_FOLLOW[operator.follow]}{otherwise}."


def _expressions() -> Iterator[str]:
    yield "## Expressions"
    yield ""
    yield inspect.getdoc(expressions) or ""
    yield ""
    yield "Besides the columns, `_time` (event time), `_batch_time` and `_key` can be used."
    yield ""
    yield from _wrapped(
        "Functions: " + ", ".join(f"`{function.usage}`" for function in FUNCTIONS.values()) + "."
    )
    yield ""
    meaning = Path(expressions.__file__).with_name("meaning.md").read_text(encoding="utf-8")
    yield from meaning.format(text_max=TEXT_MAX).splitlines()


def _wrapped(text: str) -> list[str]:
    """The text in lines of a page. Breaks lie between words and never inside of a code span."""
    lines = [""]
    for word in re.split(r" (?=(?:[^`]*`[^`]*`)*[^`]*$)", text):
        if lines[-1] and len(lines[-1]) + 1 + len(word) > LINE_MAX:
            lines.append("  " + word if text.startswith("- ") else word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
