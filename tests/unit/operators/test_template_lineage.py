"""From the alarms of each template back to their readings, over whole recordings and ten minutes of the
simulated machines."""

import random
from datetime import datetime

import pytest

from pipeline_runtime.model.document import parse_reference
from pipeline_runtime.model.templates import load_template, template_names
from pipeline_runtime.operators.expressions.casts import text_of
from pipeline_runtime.operators.lineage import TracedRow
from pipeline_runtime.operators.registry import default_registry
from pipeline_runtime.planning.lineage import ROWS_MAX, Looked, trace
from pipeline_runtime.planning.plan import plan_groups
from pipeline_runtime.trial import trial
from tests.chosen import chosen
from tests.unit.operators.templates import streams_of

ROWS = 3
"""So many rows of each alarm element are traced."""


class Topics:
    """Streams that lie in lists. The web reads the same part of a topic."""

    def __init__(self, rows):
        self.rows = rows

    def read(self, item, from_ms, until_ms, near_ms):
        rows = self.rows[parse_reference(item.source)[0]]
        times = [ms_of_row(row) for row in rows]
        begin = (
            0 if from_ms is None else next((n for n, each in enumerate(times) if each >= from_ms), len(rows))
        )
        newer = next((n for n, each in enumerate(times) if each > near_ms), len(rows))
        end = min(len(rows), newer + ROWS_MAX // 2)
        begin = max(begin, end - ROWS_MAX)
        return Looked([traced(rows[place], place) for place in range(begin, end)])


def ms_of_row(row):
    return int(row["_time"].timestamp() * 1000)


def traced(row, offset):
    values = {name: text_of(each) if isinstance(each, datetime) else each for name, each in row.items()}
    return TracedRow(ms_of_row(row), {n: v for n, v in values.items() if n != "_time"}, None, 0, offset)


def alarms_of(name):
    elements = load_template(name).spec.elements
    return [each.id for each in elements if default_registry().get(each.type).category == "alert"]


@pytest.mark.parametrize(
    "name",
    chosen(filter(alarms_of, template_names()), always=["machine-power", "press-by-opcua", "pump-by-modbus"]),
)
def test_the_alarms_lead_to_their_readings(name):
    rows, document = streams_of(name), load_template(name)
    elements = {each.id: each for each in document.spec.elements}
    specs = plan_groups(document, "d", default_registry(), {})
    chance = random.Random(1)
    for alarm in alarms_of(name):
        given = rows[alarm]
        for place in chance.sample(range(len(given)), min(ROWS, len(given))):
            read = Topics(rows).read
            steps = [*trace(specs, default_registry(), traced(given[place], place), f"{alarm}.out", read)]
            assert all(step.rows for step in steps if step.kept)
            passed = {step.source.partition(".")[0] for step in steps}
            assert any(not elements[each].inputs for each in passed), "it leads to no source"
            made, is_exact = again(rows, elements, steps)
            assert given[place] in made or not is_exact
            assert_made_again(rows, elements, steps)


def again(rows, elements, steps):
    """What the elements from the first rows that are kept make of these, up to the alarm. An alarm may run as
    one with elements before it. And whether these rows are said to be all."""
    [*inside, kept] = steps[: next(place for place, step in enumerate(steps) if step.kept) + 1]
    found = [rows[parse_reference(kept.source)[0]][row.offset] for row in kept.rows]
    for step in (kept, *reversed(inside)):
        operator = default_registry().create(elements[step.element].type, elements[step.element].params)
        found = trial(operator, found, step.schema).rows
    return found, not any(step.bounds or step.left_out for step in (kept, *inside))


def assert_made_again(rows, elements, steps):
    """The traced rows of each element make the rows that were traced to it, if they are said to be all."""
    for step in steps:
        wanted = [row for further in steps if further.source == f"{step.element}.out" for row in further.rows]
        [*others] = [each for each in steps if each.element == step.element and each is not step]
        if others or not step.kept or step.bounds or step.left_out or step.untraced:
            continue
        operator = default_registry().create(elements[step.element].type, elements[step.element].params)
        found = [rows[parse_reference(step.source)[0]][row.offset] for row in step.rows]
        made = trial(operator, found, step.schema).rows
        assert all(rows[step.element][row.offset] in made for row in wanted), step.element
