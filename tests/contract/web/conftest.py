"""Users of each role, three nodes, a pipeline that runs (as rows: nothing executes it), real Redis."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import django

django.setup()

import pytest  # noqa: E402
import redis  # noqa: E402
from django.conf import settings as django_settings  # noqa: E402
from django.core.files.uploadedfile import SimpleUploadedFile  # noqa: E402
from django.test import Client  # noqa: E402
from django.utils import timezone  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import PlainTextResponse, Response  # noqa: E402
from starlette.routing import Route  # noqa: E402

from pipeline_runtime.checkpoint import access  # noqa: E402
from pipeline_runtime.checkpoint.database import StateDatabase  # noqa: E402
from pipeline_runtime.checkpoint.files import FileStore  # noqa: E402
from pipeline_runtime.checkpoint.service import chunk_service, serve  # noqa: E402
from pipeline_runtime.kafka import reading  # noqa: E402
from pipeline_runtime.model.desired import ReplicaStatus, Role as ReplicaRole  # noqa: E402
from pipeline_runtime.model.document import parse_document  # noqa: E402
from pipeline_runtime.model.ids import Epoch, Seq  # noqa: E402
from pipeline_runtime.operators.registry import default_registry  # noqa: E402
from pipeline_runtime.planning.plan import plan_groups  # noqa: E402
from pipeline_runtime.wire import keys, tasks  # noqa: E402
from webapp.accounts.models import Role, User  # noqa: E402
from webapp.audit.models import AuditRecord  # noqa: E402
from webapp.backends import node_questions  # noqa: E402
from webapp.config.settings import channel_layers  # noqa: E402
from webapp.nodes.models import Node  # noqa: E402
from webapp.pipelines.models import Pipeline, PipelineVersion  # noqa: E402
from webapp.placements.models import Deployment, GroupPlacement, Replica  # noqa: E402

PASSWORD = "a long enough passphrase"
PIPELINE = "machine-power"
PREFIX = "/api/v1"


@pytest.fixture(autouse=True)
def no_static_files(settings: Any) -> None:
    """Each client would look at all of them again, which takes as long as several requests. No test here asks
    for one."""
    settings.SERVESTATIC_USE_FINDERS = settings.SERVESTATIC_USE_STATIC_ROOT = False


@pytest.fixture(autouse=True)
def real_redis(settings: Any, redis_url: str) -> Iterator[redis.Redis]:
    """Redis for the channel layer and for commands, emptied before each test."""
    settings.FOGLINE = django_settings.FOGLINE.model_copy(update={"redis_url": redis_url})
    settings.CHANNEL_LAYERS = channel_layers(redis_url)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    with redis.Redis.from_url(redis_url) as client:
        client.flushall()
        client.set(keys.CONTROL_STATE, "[]")  # control works
        yield client


@pytest.fixture
def nobody_answers(real_redis: redis.Redis, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no node and no Kafka, so nobody waits long for an answer of theirs."""
    for deadline in ("ANSWER_S", "PREVIEW_S"):
        monkeypatch.setattr(node_questions, deadline, 0.05)
    monkeypatch.setattr(reading, "_ANSWER_MS", 20)
    nowhere = {"kafka": "127.0.0.1:1", "kafka_security": {"bootstrap_timeout_ms": 200}}
    settings.FOGLINE = settings.FOGLINE.model_copy(update=nowhere)


@pytest.fixture
def commands(real_redis: redis.Redis) -> Callable[[], list[tuple[str, list[Any]]]]:
    """Takes the commands that wait in the control queue: [(task, args)]."""

    def take() -> list[tuple[str, list[Any]]]:
        found = []
        while (raw := real_redis.rpop(tasks.CONTROL_QUEUE)) is not None:
            message = json.loads(raw)
            args = json.loads(base64.b64decode(message["body"]))[0]
            found.append((message["headers"]["task"], args))
        return found

    return take


@dataclass
class Caller:
    """A client of the API, signed in (or not) by session."""

    http: Client

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        data = {} if body is None else {"data": json.dumps(body)}
        return self.http.generic(
            method, PREFIX + path, **data, content_type="application/json", headers=headers or None
        )

    def get(self, path: str, **headers: str) -> Any:
        return self.call("GET", path, **headers)

    def post(self, path: str, body: Any = None, **headers: str) -> Any:
        return self.call("POST", path, body, **headers)

    def put(self, path: str, body: Any, **headers: str) -> Any:
        return self.call("PUT", path, body, **headers)

    def delete(self, path: str) -> Any:
        return self.call("DELETE", path)


@pytest.fixture
def users(transactional_db: None) -> dict[str, User]:
    return {
        role.value: User.objects.create_user(f"{role.value}-user", password=PASSWORD, role=role)
        for role in Role
    }


@pytest.fixture
def caller(users: dict[str, User]) -> Callable[[str | None], Caller]:
    """caller("editor") is signed in with that role; caller(None) is nobody."""

    def make(role: str | None) -> Caller:
        client = Client()
        if role is not None:
            client.force_login(users[role])
        return Caller(client)

    return make


@pytest.fixture
def nodes(transactional_db: None) -> dict[str, Node]:
    """edge-a, edge-b and cloud, all up."""
    load = {"cpu_ratio": 0.25, "memory_bytes": 2e9, "memory_ratio": 0.5, "disk_ratio": 0.1}
    return {
        name: Node.objects.create(
            name=name,
            up=True,
            ready=True,
            cores=2,
            version=django_settings.FOGLINE_VERSION,
            url="http://127.0.0.1:1",
            load=load,
            last_seen_at=timezone.now(),
        )
        for name in ("edge-a", "edge-b", "cloud")
    }


@pytest.fixture
def document() -> dict[str, Any]:
    """readings -> watch (variation, alerts) -> chart; readings -> power -> archive."""

    def element(id: str, type_: str, source: str | None, node: str | None, **params: Any) -> dict[str, Any]:
        inputs = {"inputs": {"in": source}} if source else {}
        pin = {"node": node} if node else {}
        return {"id": id, "type": type_, "params": params, "ui": {"x": 0, "y": 0}, **inputs, **pin}

    average = {"function": "avg", "column": "mf01", "as": "mf01_average"}
    elements = [
        element("readings", "csv-replay", None, "edge-a", path="demo:debs2012", rate=100),
        element("variation", "window-aggregate", "readings", "edge-b", size_s=1, aggregates=[average]),
        element("alerts", "filter", "variation", "edge-b", condition="mf01_average > 30"),
        element("power", "window-aggregate", "readings", "cloud", size_s=60, aggregates=[average]),
        element("archive", "csv-sink", "power", "cloud", file="power.csv"),
        element("chart", "live-chart", "variation", None, columns=["mf01_average"]),
    ]
    return {
        "apiVersion": "fogline/v1",
        "kind": "Pipeline",
        "metadata": {"name": PIPELINE},
        "spec": {"elements": elements, "groups": [{"id": "watch", "elements": ["variation", "alerts"]}]},
    }


@pytest.fixture
def pipeline(users: dict[str, User], nodes: dict[str, Node], document: dict[str, Any]) -> Pipeline:
    """A draft."""
    return Pipeline.objects.create(name=PIPELINE, draft=document, updated_by=users["editor"])


@pytest.fixture
def deployment(pipeline: Pipeline, nodes: dict[str, Node]) -> Deployment:
    """The pipeline, deployed and running: each group owned where the document pins it."""
    version = PipelineVersion.objects.create(pipeline=pipeline, number=1, document=pipeline.draft)
    deployment = Deployment.objects.create(pipeline=pipeline, version=version, status="running")
    specs = plan_groups(parse_document(pipeline.draft), deployment.pk, default_registry(), {})
    pinned = {element["id"]: element.get("node") for element in pipeline.draft["spec"]["elements"]}
    for spec in specs:
        node = nodes[pinned[spec.elements[0].id]]
        GroupPlacement.objects.create(
            deployment=deployment, group=spec.group, spec=spec.model_dump(mode="json"), node=node
        )
        report(deployment, spec.group, node)
    return deployment


def report(deployment: Deployment, group: str, node: Node, role: str = "owner", **status: Any) -> Replica:
    """What the control side writes when a node has reported a replica."""
    known = ReplicaStatus(
        group=f"{deployment.pk}.{group}",
        role=ReplicaRole(role),
        phase="owning",
        epoch=Epoch(status.pop("epoch", 1)),
        seq=Seq(status.pop("seq", 7)),
        rows_in_total=700,
        rows_out_total=70,
        **{"lag_rows": 0, **status},
    )
    replica, _ = Replica.objects.update_or_create(
        deployment=deployment,
        group=group,
        node=node,
        defaults={
            "status": known.model_dump(mode="json"),
            "rates": {"rows_in_per_s": 100.0, "rows_out_per_s": 10.0},
            "role": role,
            "epoch": known.epoch,
            "seq": known.seq,
            "at": timezone.now(),
        },
    )
    return replica


def audited(action: str) -> int:
    return AuditRecord.objects.filter(action=action).count()


def save(editor: Caller, document: dict[str, Any]) -> None:
    """Saves the document as the draft of PIPELINE."""
    path = f"/pipelines/{PIPELINE}"
    tag = editor.get(path).headers["ETag"]
    assert editor.put(path, {"document": document}, **{"If-Match": tag}).status_code == 200


@dataclass
class Central:
    url: str
    files: FileStore
    database: StateDatabase


@pytest.fixture
def central(tmp_path: Path, settings: Any, transactional_db: None) -> Iterator[Central]:
    """The chunk service, as the control side runs it; it also serves outputs, as a node's does."""
    files = FileStore(tmp_path / "files")
    with StateDatabase(tmp_path / "state", grace_s=0) as database:
        app = chunk_service(database, settings.FOGLINE.cluster_key, files)

        async def output(request: Request) -> Response:
            group = request.path_params["group"]
            token = request.headers["authorization"].removeprefix("Bearer ")
            access.check(settings.FOGLINE.cluster_key, token, access.group_read(group))
            if request.path_params["element"] != "archive":
                return PlainTextResponse("no", status_code=404)
            # A node that would like to be a page of the dashboard's.
            inline = {"content-disposition": "inline"}
            return PlainTextResponse("a,b\n" * 100_000, media_type="text/html", headers=inline)

        app.router.routes.append(Route("/groups/{group}/output/{element}", output))
        server = serve(app, "127.0.0.1", 0)
        settings.FOGLINE = settings.FOGLINE.model_copy(update={"chunk_port": server.port})
        yield Central(server.url, files, database)
        server.close()


def upload(client: Client, name: str, content: bytes, **form: str) -> Any:
    return client.post("/api/v1/files", {"file": SimpleUploadedFile(name, content, "text/csv"), **form})
