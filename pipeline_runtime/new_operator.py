"""`python -m pipeline_runtime.new_operator NAME` makes a package with an operator of your own and a passing
test.

NAME is the operator's type, such as `moving-range`. The package is a directory of that name in the current
directory. It counts the rows of each key; change that to what you need. With `--source` or `--sink` it has a
connector, which reads or writes the lines of a TCP server (docs/how-to/write-a-connector.md).
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from pipeline_runtime.connectors.scaffold import Kind, connector_files
from pipeline_runtime.operators.registry import default_registry

NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
NAME_MAX = 40

_PYPROJECT = """\
[project]
name = "fogline-{type}"
version = "0.1.0"
description = "{title}: an operator for Fogline"
requires-python = ">=3.11"

[project.entry-points."fogline.operators"]
{type} = "{module}:{name}"

[build-system]
requires = ["setuptools>=64"]
build-backend = "setuptools.build_meta"

[tool.setuptools]
py-modules = [{modules}]
"""

_OPERATOR = '''\
"""State: {title}."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import Field

from pipeline_runtime.model.schema import Field as SchemaField, FieldType, StreamSchema
from pipeline_runtime.operators.sdk import KeyedProcessor, OutputRow, Params, Row, Timers


class {name}Params(Params):
    start: int = Field(default=0, description="the number before the first row's")


class {name}(KeyedProcessor):
    """Numbers the rows of each key. (This docstring is the operator's help, in Markdown.)

    Output: the input's columns and `number`.
    """

    type = "{type}"
    title = "{title}"
    summary = "Numbers the rows of each key"
    category = "state"
    icon = "hash"
    Params = {name}Params
    state_params = frozenset()  # all parameters may change while the state stays
    keeps = "how many rows of each key there were: it counts from the start again"
    example = {{"start": 0}}

    params: {name}Params

    def key_field(self) -> str | None:
        return None  # by the record's key

    def output_schema(self, inputs: Mapping[str, StreamSchema]) -> StreamSchema:
        given = inputs["in"]
        number = SchemaField(name="number", type=FieldType.INTEGER)
        return StreamSchema(fields=(*given.fields, number), key=given.key)

    def process(self, key: str, row: Row, state: dict[str, Any], timers: Timers) -> Iterable[OutputRow]:
        state["rows"] = state.get("rows", 0) + 1
        return [row.plus(number=self.params.start + state["rows"])]
'''

_TEST = '''\
"""Laws of {title}. Run them with Fogline's Python: python -m pytest"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from pipeline_runtime.model.schema import Field, FieldType, StreamSchema
from pipeline_runtime.trial import at, trial
from {module} import {name}, {name}Params

SCHEMA = StreamSchema(
    fields=(Field(name="machine", type=FieldType.STRING), Field(name="value", type=FieldType.NUMBER)),
    key="machine",
)


def rows(count: int) -> list[dict[str, object]]:
    chance = Random(7)
    return [{{"_time": at(n), "machine": chance.choice("ab"), "value": float(n)}} for n in range(count)]


def test_rows_of_each_key_are_numbered_from_the_start() -> None:
    given = [{{"_time": at(n), "machine": machine, "value": 1.0}} for n, machine in enumerate("aab")]
    found = trial({name}({name}Params(start=5)), given, SCHEMA)
    assert [(row["machine"], row["number"]) for row in found.rows] == [("a", 6), ("a", 7), ("b", 6)]
    assert found.rejected == []


@pytest.mark.parametrize("seed", range(5))
def test_however_the_rows_are_cut_and_the_state_moves_the_result_is_the_same(seed: int) -> None:
    def outcome_of(seed: int | None) -> list[tuple[object, ...]]:
        found = trial({name}({name}Params()), rows(100), SCHEMA, seed=seed)
        return sorted((row["machine"], row["number"], row["value"]) for row in found.rows)

    assert outcome_of(seed) == outcome_of(None)


def test_it_is_found_by_its_entry_point_under_its_type() -> None:
    text = (Path(__file__).parent / "pyproject.toml").read_text()
    assert f'{{{name}.type}} = "{module}:{name}"' in text
'''

_README = """\
# {title}

An operator for Fogline. Its code is `{module}.py`; what an operator may do is said in Fogline's
`docs/how-to/add-an-operator.md`.

    <fogline>/.venv/bin/python -m pytest          # here, with PYTHONPATH=<fogline>
    <fogline>/.venv/bin/pip install .             # then restart Fogline: web, control and nodes
"""


class NotMade(ValueError):
    """Says what is wrong, and what to do."""


def make(type_: str, directory: Path, connector: Kind | None = None) -> Path:
    """Returns the package's directory. Raises NotMade if the name is not allowed or taken, or the directory
    exists."""
    if not NAME.fullmatch(type_) or len(type_) > NAME_MAX:
        raise NotMade(
            f'"{type_}" is no name; choose up to {NAME_MAX} small letters and digits, joined by hyphens'
        )
    if type_ in default_registry():
        raise NotMade(f'there is an operator "{type_}" already; choose another name')
    package = directory / type_
    try:
        package.mkdir()
    except FileExistsError:
        raise NotMade(
            f"{package} is there already; nothing was changed. Choose another name or directory"
        ) from None
    words = {
        "type": type_,
        "title": type_.replace("-", " ").capitalize(),
        "name": "".join(part.capitalize() for part in type_.split("-")),
        "module": type_.replace("-", "_"),
    }
    module = words["module"]
    texts = {"pyproject.toml": _PYPROJECT, "README.md": _README}
    modules = f'"{module}"'
    if connector is None:
        texts |= {f"{module}.py": _OPERATOR, f"test_{module}.py": _TEST}
    else:
        modules += f', "{module}_connector"'
    files = {name: text.format(**words, modules=modules) for name, text in texts.items()}
    if connector is not None:
        files |= connector_files(connector, words)
    for name, text in files.items():
        (package / name).write_text(text, encoding="utf-8")
    return package


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m pipeline_runtime.new_operator", description=__doc__)
    parser.add_argument("name", help="the operator's type, such as moving-range")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--source", action="store_const", const="source", dest="connector")
    kind.add_argument("--sink", action="store_const", const="sink", dest="connector")
    asked = parser.parse_args(arguments)
    try:
        package = make(asked.name, Path(), asked.connector)
    except (NotMade, OSError) as error:
        print(f"No operator was made: {error}.", file=sys.stderr)
        return 1
    what = "a connector of a TCP server" if asked.connector else "an operator that numbers rows"
    print(f"{package}/ is {what}, with a test. Its README.md says how to go on.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
