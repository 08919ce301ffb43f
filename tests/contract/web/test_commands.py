"""Management commands that `make up` runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from webapp.accounts.models import User
from webapp.nodes.models import Node
from webapp.operations.models import Operation
from webapp.pipelines.models import Pipeline

Commands = Callable[[], list[tuple[str, list[Any]]]]


def output_of(*command: str) -> str:
    out = StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


@pytest.fixture
def data(settings: Any, tmp_path: Path, transactional_db: None) -> Path:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"data": tmp_path})
    return tmp_path


def test_the_first_admin_is_made_once_and_its_login_shown_until_it_changes(data: Path) -> None:
    first = json.loads(output_of("ensure_admin"))
    assert first["created"] is True
    assert (data / "admin.json").stat().st_mode & 0o777 == 0o600
    again = json.loads(output_of("ensure_admin"))
    assert again == {**first, "created": False}
    login = {"username": first["username"], "password": first["password"]}
    assert Client().post("/accounts/login/", login).status_code == 302
    user = User.objects.get()
    assert user.role == "admin"
    user.set_password("something else entirely")
    user.save()
    assert json.loads(output_of("ensure_admin"))["password"] is None


def test_the_demo_is_deployed_when_there_is_no_pipeline_yet(
    data: Path, nodes: dict[str, Node], commands: Commands
) -> None:
    output_of("ensure_admin")
    output_of("demo", "--no-wait")
    operation = Operation.objects.get()
    assert commands() == [("fogline.control.operation", [str(operation.pk)])]
    assert operation.deployment.pipeline.name == "machine-power"
    assert "already" in output_of("demo", "--no-wait")
    assert Pipeline.objects.count() == 1


def test_the_demo_makes_do_with_the_nodes_there_are(
    data: Path, settings: Any, nodes: dict[str, Node]
) -> None:
    settings.FOGLINE = settings.FOGLINE.model_copy(update={"nodes": ("edge-a",)})
    Node.objects.exclude(name="edge-a").delete()
    output_of("ensure_admin")
    output_of("demo", "--no-wait")
    draft = Pipeline.objects.get().draft
    assert {element.get("node") for element in draft["spec"]["elements"]} <= {"edge-a", None}


def test_without_a_node_the_demo_says_whom_it_waited_for(data: Path, settings: Any) -> None:
    output_of("ensure_admin")
    with pytest.raises(CommandError, match="edge-a"):
        output_of("demo", "--timeout", "0")
    assert not Pipeline.objects.exists()


def test_the_openapi_document_can_be_printed(data: Path) -> None:
    assert "/api/v1/pipelines" in json.loads(output_of("openapi"))["paths"]


def test_django_finds_nothing_wrong_with_the_project() -> None:
    """`make up` does without its checks."""
    call_command("check", fail_level="WARNING")
