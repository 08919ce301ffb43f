"""Checks that what a policy names exists."""

from __future__ import annotations

from typing import NoReturn

from pipeline_runtime.placement.policy.rules import Apart, FollowUser, LatencyAbove, Maintenance, Rule, Sites
from webapp.nodes.models import Node
from webapp.pipelines.models import Pipeline
from webapp.pipelines.shape import element_of
from webapp.problems import CORRECT, Fault, Invalid


def check_rule(rule: Rule) -> None:
    """Checks that what the rule names exists."""
    # A policy of sites may be about every pipeline.
    if isinstance(rule, LatencyAbove | FollowUser | Apart) or (isinstance(rule, Sites) and rule.pipeline):
        pipeline = Pipeline.objects.filter(name=rule.pipeline).first()
        if pipeline is None:
            refuse(f"rule.{rule.kind}.pipeline", f"there is no pipeline {rule.pipeline}")
        element = rule.element if isinstance(rule, LatencyAbove | FollowUser) else ""
        if element and element_of(pipeline.draft, element) is None:
            refuse(f"rule.{rule.kind}.element", f"the draft of {rule.pipeline} has no element {element}")
    if not isinstance(rule, Maintenance):
        return
    nodes = list(Node.objects.all())
    known = {node.name for node in nodes} if rule.of == "node" else {node.place for node in nodes}
    if rule.name not in known:
        refuse("rule.maintenance.name", f"there is no {rule.of} {rule.name}")


def refuse(path: str, message: str) -> NoReturn:
    fault: Fault = {"element": None, "path": path, "message": message, "code": "invalid"}
    raise Invalid(
        f"This policy is not valid: {path}: {message}.",
        safe="Nothing was changed.",
        next=CORRECT,
        faults=[fault],
    )
