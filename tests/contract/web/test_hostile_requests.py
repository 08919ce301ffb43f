"""Requests that are malformed, too deep, too many or of the wrong kind get a problem document. None of them
causes an error of the server, and nothing of them is stored."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.conf import settings as django_settings
from django.test import Client

from tests.chosen import third
from tests.contract.web.conftest import PIPELINE, PREFIX, Caller
from tests.contract.web.test_live import communicator_of, connected
from tests.contract.web.test_permissions import NOBODYS, assert_problem
from webapp.accounts.models import ApiToken
from webapp.api.api import api
from webapp.pipelines import files
from webapp.pipelines.models import DataFile, Pipeline
from webapp.placements.models import Deployment
from webapp.walls.models import Wall

Call = Callable[[str | None], Caller]
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"


def field(name: str, file: bool = False) -> bytes:
    filename = b'; filename="a.csv"' if file else b""
    return b'--x\r\nContent-Disposition: form-data; name="%b"%b\r\n\r\n1\r\n' % (name.encode(), filename)


# What stands in a body's place: (content type, body)
BODIES: dict[str, tuple[str, bytes]] = {
    "nothing": (JSON, b""),
    "no JSON": (JSON, b"{"),
    "another type": (JSON, b"[1]"),
    "null": (JSON, b"null"),
    "a number": (JSON, b"1e999999"),
    "NaN": (JSON, b"NaN"),
    "Infinity": (JSON, b"-Infinity"),
    "digits": (JSON, b"9" * 5000),
    "an object of digits": (JSON, b'{"version": %b}' % (b"9" * 5000)),
    "deep": (JSON, b"[" * 100_000),
    "bytes": (JSON, b"\xff\xfe\x00"),
    "an unknown charset": ("application/json; charset=none", b"{}"),
    "a form": (FORM, b"name=%00&target=%ED%A0%80"),
    "many form fields": (FORM, b"&".join(b"f%d=1" % n for n in range(2000))),
    "no boundary": ("multipart/form-data", b"x"),
    "a bad boundary": ("multipart/form-data; boundary=\xe9\xff", b"x"),
    "a long boundary": (f"multipart/form-data; boundary={'b' * 500}", b"x"),
    "another boundary": (MULTIPART, b"--y\r\n\r\n"),
    "a cut form": (MULTIPART, b'--x\r\nContent-Disposition: form-data; name="file"; filename="a'),
    "1,001 fields": (MULTIPART, b"".join(field(f"f{n}") for n in range(1001)) + b"--x--\r\n"),
    "101 files": (MULTIPART, b"".join(field(f"f{n}", True) for n in range(101)) + b"--x--\r\n"),
    "an unknown encoding": (
        MULTIPART,
        b"--x\r\nContent-Disposition: form-data; name=file; filename*=none''%ff\r\n\r\n1\r\n--x--\r\n",
    ),
    "bad base64": (
        MULTIPART,
        b'--x\r\nContent-Disposition: form-data; name="a"\r\n'
        b"Content-Transfer-Encoding: base64\r\n\r\n*a\r\n--x--\r\n",
    ),
}
# What a route gets that takes no body.
UNASKED = ("no JSON", "bytes", "101 files")
# What stands in the place of each value that the API's own description names.
VALUES: dict[str, bytes] = {
    "half a surrogate pair": rb'"\ud800"',
    "NUL": rb'"\u0000"',
    "NaN": b"NaN",
    "Infinity": b"Infinity",
    "too large a number": b"1e999999",
    "too many digits": b"9" * 5000,
    "65 bits": b"18446744073709551616",
    "deep": b"[" * 500 + b"]" * 500,
    "deep objects": b'{"a":' * 500 + b"1" + b"}" * 500,
    "another type": b'{"a": [null, true]}',
    "a long text": b'"' + b"x" * 100_000 + b'"',
    "negative": b"-1",
    "63 bits": b"9223372036854775807",
}
# In the place of each part of an address, and of each query parameter.
PARTS = ["%00", "%ED%A0%80", "9" * 5000, "9223372036854775808", "-1", "x" * 3000, "%2F..%2F", "%F0%9F%98%80"]


@cache
def described() -> dict[str, Any]:
    return api.get_openapi_schema(path_prefix="")


def routes() -> dict[str, list[tuple[str, str]]]:
    """The cases: all that only look are one, since they leave what the next one needs."""
    paths = described()["paths"]
    found = [(method.upper(), path) for path, methods in paths.items() for method in methods]
    looks = [each for each in found if each[0] == "GET"]
    return {"GET": looks, **{" ".join(each): [each] for each in found if each not in looks}}


def bodies_of(method: str, path: str) -> dict[str, tuple[str, bytes]]:
    takes_one = "requestBody" in described()["paths"][path][method.lower()]
    return BODIES if takes_one else {what: BODIES[what] for what in UNASKED}


def concrete(path: str) -> str:
    return (
        path.replace("{name}", PIPELINE if "/pipelines" in path else "edge-a")
        .replace("/policies/{id}", "/policies/1")
        .replace("/alarms/{id}", "/alarms/1")
        .replace("/alarms/rules/{id}", "/alarms/rules/1")
        .replace("/alarms/routes/{id}", "/alarms/routes/1")
        .replace("/alarms/channels/{id}", "/alarms/channels/1")
        .replace("/walls/{id}", "/walls/hall")
        .replace("{link}", "1")
        .replace("{id}", NOBODYS if re.search("handovers|operations", path) else "power")
        .replace("{stream}", "power")
        .replace("{number}", "1")
        .replace("{type}", "filter")
        .replace("{username}", "viewer-user")
    )


def properties(path: str, method: str) -> list[str]:
    """The names of the fields of a route's JSON body."""
    schema = described()
    operation = schema["paths"][path][method.lower()]
    content = operation.get("requestBody", {}).get("content", {}).get(JSON, {}).get("schema", {})
    found = json.dumps(content)
    names = re.findall(r"#/components/schemas/(\w+)", found)
    return [field for name in names for field in schema["components"]["schemas"][name].get("properties", {})]


@pytest.fixture
def admin(caller: Call, deployment: Deployment) -> Client:
    series = {"pipeline": PIPELINE, "element": "power", "column": "mf01"}
    place = {"x": 0, "y": 0, "w": 1, "h": 1}
    chart = {"id": "t", "kind": "chart", "series": [series], **place}
    table = {
        "id": "r",
        "kind": "table",
        "pipeline": PIPELINE,
        "element": "power",
        "columns": ["mf01"],
        **place,
    }
    tiles = [chart, table]
    Wall.objects.create(id="hall", title="Hall", tiles=tiles)
    client = caller("admin").http
    client.raise_request_exception = False
    return client


def refused(response: Any, what: str) -> None:
    assert response.status_code < 500 or response.status_code == 503, (what, response.content)
    if response.status_code >= 400:
        assert_problem(response, response.status_code)


@pytest.mark.parametrize("which", routes())
@pytest.mark.usefixtures("nobody_answers")
def test_each_route_refuses_hostile_bodies_addresses_and_queries(admin: Client, which: str) -> None:
    for method, path in routes()[which]:
        refuses_what_is_hostile(admin, method, path)
        assert Pipeline.objects.filter(name=PIPELINE).exists() or method in ("DELETE", "POST")


def refuses_what_is_hostile(admin: Client, method: str, path: str) -> None:
    address = PREFIX + concrete(path)
    headers = {"If-Match": '"1"'}
    for what, (content_type, body) in third(bodies_of(method, path).items(), path):
        said = f"{path}: {what}"
        refused(admin.generic(method, address, body, content_type=content_type, headers=headers), said)
    for name in properties(path, method):
        for what, value in third(VALUES.items(), path + name):
            body = b'{"%b": %b}' % (name.encode(), value)
            refused(
                admin.generic(method, address, body, content_type=JSON, headers=headers), f"{name}: {what}"
            )
    for part in third(PARTS, path):
        for place in re.findall(r"\{\w+\}", path):
            hostile = PREFIX + concrete(path.replace(place, part))
            refused(admin.generic(method, hostile, b"{}", content_type=JSON), hostile[:200])
        if method == "GET":
            names = ("limit", "pipeline", "element", "group", "node", "severity", "from", "to")
            query = "&".join(f"{name}={part}" for name in names)
            refused(admin.get(f"{address}?{query}"), f"{path}?{query}"[:200])


@pytest.mark.parametrize("what", VALUES)
def test_a_draft_with_a_hostile_value_is_refused_and_the_saved_one_stays(
    caller: Call, pipeline: Pipeline, what: str
) -> None:
    value = VALUES[what]
    draft = json.dumps({**pipeline.draft, "more": {"here": ["HOSTILE"]}})
    body = b'{"document": %b}' % draft.encode().replace(b'"HOSTILE"', value)
    response = caller("editor").http.put(
        f"{PREFIX}/pipelines/{PIPELINE}", body, content_type=JSON, headers={"If-Match": '"1"'}
    )
    plain = what in ("another type", "a long text", "negative", "63 bits")  # a draft may be wrong like this
    assert response.status_code == (200 if plain else 400), response.content
    if not plain:
        problem = assert_problem(response, 400)
        assert problem["safe"] == "Nothing was changed."
        pipeline.refresh_from_db()
        assert "more" not in pipeline.draft


def test_where_a_hostile_text_stands_is_said(caller: Call, pipeline: Pipeline) -> None:
    pipeline.draft["spec"]["elements"][4]["params"]["file"] = "\ud800"
    response = caller("editor").put(
        f"/pipelines/{PIPELINE}", {"document": pipeline.draft}, **{"If-Match": '"1"'}
    )
    (fault,) = assert_problem(response, 400)["faults"]
    assert fault["path"] == "document.spec.elements[4].params.file"
    assert "surrogate" in fault["message"]


def test_a_token_is_not_called_by_half_a_character(caller: Call) -> None:
    for name in ("\ud800", "a\0"):
        assert_problem(caller("viewer").post("/tokens", {"name": name}), 400)
    assert not ApiToken.objects.exists()


@pytest.mark.parametrize(
    "name",
    ["\0.csv", "a\0b.csv", "..", "\u202e.csv", "x" * 5000, "../../\u0000", "*=unicode_escape''%5Cud800.csv"],
)
def test_a_files_name_is_made_harmless_or_refused(
    caller: Call, name: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "put_file", lambda *_: None)  # where the bytes go is not the point
    given = f"filename{name}" if name.startswith("*=") else f'filename="{name}"'
    body = (
        b'--x\r\nContent-Disposition: form-data; name="file"; %b\r\n\r\na\n1\n\r\n--x--\r\n' % given.encode()
    )
    response = caller("editor").http.post(f"{PREFIX}/files", body, content_type=MULTIPART)
    assert response.status_code in (201, 400, 422), response.content
    for row in DataFile.objects.all():
        assert re.fullmatch(r"[\w. ()+-]{1,120}", row.name)


@pytest.mark.parametrize("path", ["/pipelines/%00", "/nodes/%00", "/events/?node=%00", "/%00"])
def test_a_page_whose_address_has_a_nul_cannot_be_read(caller: Call, path: str) -> None:
    response = caller("viewer").http.get(path)
    assert response.status_code == 400
    assert b"NUL character" in response.content


def test_a_cookie_with_a_nul_is_refused_before_a_session_is_looked_for(transactional_db: None) -> None:
    client = Client(raise_request_exception=False)
    client.cookies[django_settings.SESSION_COOKIE_NAME] = "a"
    cookie = rf'{django_settings.SESSION_COOKIE_NAME}="\000"'
    assert client.get("/", headers={"Cookie": cookie}).status_code == 400
    assert_problem(client.get(f"{PREFIX}/me", headers={"Cookie": cookie}), 400)


# --- websockets ---------------------------------------------------------------------------------
@pytest.fixture
def session(caller: Call) -> str:
    return str(caller("viewer").http.cookies[django_settings.SESSION_COOKIE_NAME].value)


@pytest.mark.parametrize(
    ("path", "origin"),
    [
        ("/ws/nowhere", "http://localhost"),
        ("/", "http://localhost"),
        ("/ws/live/", "http://localhost"),
        ("/ws/\0", "http://localhost"),
        ("/ws/live", "http://["),
        ("/ws/live", "http://localhost:99999"),
    ],
)
def test_a_websocket_to_nowhere_or_from_no_origin_is_closed_without_a_traceback(
    session: str, path: str, origin: str
) -> None:
    async def close() -> None:
        communicator = communicator_of(session, origin)
        communicator.scope["path"] = path
        assert (await communicator.connect())["type"] == "websocket.close"
        await communicator.wait(10)  # raises what the application raised

    async_to_sync(close)()


def test_a_websockets_cookie_with_a_nul_is_refused(transactional_db: None) -> None:
    async def close() -> None:
        communicator = communicator_of(r'"\000"')
        assert (await communicator.connect())["type"] == "websocket.close"
        await communicator.wait(10)

    async_to_sync(close)()


@pytest.mark.parametrize("text", ["[" * 4000, "9" * 4000, "NaN", r'{"watch": {"pipeline": "\ud800"}}'])
async def test_a_hostile_message_is_passed_over(session: str, text: str) -> None:
    async with connected(session) as socket:
        assert (await socket.take())["type"] == "snapshot"
        await socket.communicator.send_to(text)
        await socket.say(resync=True)
        assert (await socket.take())["type"] == "snapshot"
