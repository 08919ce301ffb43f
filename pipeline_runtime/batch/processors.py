"""A group's processor, as a worker process runs it: what comes to its ports, and the work that it does."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipeline_runtime.batch.batched import BatchWork
from pipeline_runtime.batch.held_states import HeldStates
from pipeline_runtime.batch.inputs import operator_context, operator_of
from pipeline_runtime.batch.keyed import KeyedWork
from pipeline_runtime.batch.rows import Inputs, ProcessorWork
from pipeline_runtime.model.spec import GroupSpec
from pipeline_runtime.operators.sdk import BatchProcessor, KeyedProcessor, Operator, OperatorContext


def processor_inputs(spec: GroupSpec, element: str) -> Inputs:
    """Returns the inputs of a processor of the group."""
    [item] = [item for item in spec.elements if item.id == element]
    ports = [port.name for port in operator_of(spec, element).inputs if port.name in item.inputs]
    return [(port, spec.schemas[item.inputs[port]]) for port in ports]


def processor_work(
    spec: GroupSpec,
    element: str,
    files: Mapping[str, str],
    directory: Path,
    held: HeldStates | None = None,
) -> ProcessorWork:
    """`files`: file reference -> local path; `directory`: the replica's; `held`: None for a task that does
    not stay."""
    context = operator_context(spec, element, files, directory)
    return work_of(operator_of(spec, element), processor_inputs(spec, element), context, held)


def work_of(
    processor: Operator, inputs: Inputs, context: OperatorContext, held: HeldStates | None = None
) -> ProcessorWork:
    if isinstance(processor, BatchProcessor):
        return BatchWork(processor, inputs, context, held)
    assert isinstance(processor, KeyedProcessor), f"{processor.type} is no processor"
    return KeyedWork(processor, inputs, context.output_schema, held)
