"""A new machine joins over HTTP with its one-time token."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pipeline_runtime.settings import Settings
from webapp.accounts.models import User
from webapp.nodes.actions import invite
from webapp.nodes.models import Node
from workers.node.identity import EnrolmentFailed, enrol, enrolled_identity, local_identity

pytestmark = pytest.mark.integration


@pytest.fixture
def machine(tmp_path: Path) -> Settings:
    return Settings.from_env({"FOGLINE_DATA": str(tmp_path), "FOGLINE_NODE_PORT": "18500"})


@pytest.fixture
def token(transactional_db: None) -> str:
    admin = User.objects.create_user("root", password="x", role="admin")
    return invite(admin, "barn")[1]


def test_a_token_admits_one_machine_once(live_server: Any, token: str, machine: Settings) -> None:
    enrol(live_server.url, token, "barn", machine)
    credential = machine.node_directory("barn") / "credential.json"
    assert stat.S_IMODE(os.stat(credential).st_mode) == 0o600
    identity = enrolled_identity("barn", machine)
    assert identity is not None
    assert identity.name == "barn"
    assert identity.cluster_key
    assert (identity.port, identity.port_fixed) == (18500, True)
    assert identity.url == Node.objects.get(name="barn").url
    with pytest.raises(EnrolmentFailed, match="used already"):
        enrol(live_server.url, token, "barn", machine)


def test_a_port_is_tried_from_behind_those_of_the_nodes_here_until_one_is_named(
    live_server: Any, token: str, tmp_path: Path
) -> None:
    unnamed = Settings.from_env({"FOGLINE_DATA": str(tmp_path)})
    enrol(live_server.url, token, "barn", unnamed)
    identity = enrolled_identity("barn", unnamed)
    assert identity is not None
    assert (identity.port, identity.port_fixed) == (18113, False)
    moved = identity.at_port(18120)
    assert moved.url.endswith(":18120")
    assert enrolled_identity("barn", unnamed) == moved
    named = Settings.from_env({"FOGLINE_DATA": str(tmp_path), "FOGLINE_NODE_PORT": "18500"})
    identity = enrolled_identity("barn", named)
    assert identity is not None
    assert (identity.port, identity.port_fixed) == (18500, True)
    assert identity.url.endswith(":18500")


def test_a_machine_that_joins_again_has_what_was_changed_since(
    live_server: Any, token: str, machine: Settings, settings: Any
) -> None:
    enrol(live_server.url, token, "barn", machine)
    settings.FOGLINE = settings.FOGLINE.model_copy(
        update={"cluster_key": "another", "kafka": "elsewhere:9092"}
    )
    before = enrolled_identity("barn", machine)
    assert before is not None
    assert before.cluster_key != "another"
    enrol(live_server.url, invite(User.objects.get(), "barn")[1], "barn", machine)
    identity = enrolled_identity("barn", machine)
    assert identity is not None
    assert (identity.cluster_key, identity.kafka.bootstrap) == ("another", "elsewhere:9092")


def test_a_wrong_token_or_name_is_told_and_keeps_nothing(
    live_server: Any, token: str, machine: Settings
) -> None:
    with pytest.raises(EnrolmentFailed, match="not known"):
        enrol(live_server.url, "nonsense", "barn", machine)
    with pytest.raises(EnrolmentFailed, match='admits "barn"'):
        enrol(live_server.url, token, "shed", machine)
    assert enrolled_identity("barn", machine) is None
    assert not Node.objects.exists()


def test_a_dashboard_that_does_not_answer_is_told(machine: Settings) -> None:
    with pytest.raises(EnrolmentFailed, match="The token was not used"):
        enrol("http://127.0.0.1:9", "t", "barn", machine)


def test_a_local_node_needs_no_enrolment(machine: Settings) -> None:
    assert enrolled_identity("edge-b", machine) is None
    identity = local_identity("edge-b", machine)
    assert identity.url == "http://127.0.0.1:18501"
    assert identity.central_url == machine.chunk_url
