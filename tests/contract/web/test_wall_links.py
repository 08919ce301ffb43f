"""Links, which show one wall to people without an account."""

from __future__ import annotations

import json
import logging
from datetime import timedelta

import pytest
from django.utils import timezone

from tests.contract.web.conftest import PREFIX, audited
from tests.contract.web.test_permissions import ENDPOINTS, assert_problem
from tests.contract.web.walls import CHART, NOTE, Call, by_link, linked, look, made, with_secret
from webapp.accounts.models import User
from webapp.walls.models import Wall, WallLink


def test_a_link_shows_its_wall_and_names_nobody(caller: Call) -> None:
    made(caller, "Hall", CHART | {"annotations": [NOTE]})
    made(caller, "Other")
    shown = by_link(caller, "hall")
    wall = shown.get("/walls/hall").json()
    assert (wall["title"], wall["changed_by"]) == ("Hall", None)
    assert [note["by"] for note in wall["tiles"][0]["annotations"]] == [""]
    assert "operator-user" not in json.dumps(look(shown, [{"tile": "t"}]))
    assert_problem(shown.get("/walls/other"), 403)
    assert_problem(shown.post("/walls/other/look", {}), 403)


@pytest.mark.usefixtures("deployment")
def test_a_link_opens_nothing_but_two_ways_to_look_at_its_wall(caller: Call) -> None:
    made(caller, "Hall", CHART)
    shown = by_link(caller, "hall")
    opened = {
        (method, path.split("?")[0])
        for method, path, body, _ in ENDPOINTS
        if shown.call(method, path, body).status_code != 401
    }
    assert opened == {("GET", "/walls/hall"), ("POST", "/walls/hall/look")}
    assert shown.http.get("/").status_code == 302


def test_a_secret_is_shown_once_and_is_neither_stored_nor_logged(
    caller: Call, caplog: pytest.LogCaptureFixture
) -> None:
    made(caller)
    with caplog.at_level(logging.DEBUG):
        link = linked(caller, "hall")
        with_secret(link["secret"]).get("/walls/hall")
        with_secret(link["secret"] + "x").get("/walls/hall")
    assert link["secret"].startswith("fogline_wall_")
    assert link["secret"] not in caplog.text
    assert "secret" not in caller("operator").get("/walls/hall/links").json()[0]
    stored = [value for row in WallLink.objects.values() for value in row.values()]
    assert link["secret"] not in stored


def test_a_revoked_link_opens_nothing(caller: Call) -> None:
    made(caller)
    link = linked(caller, "hall")
    shown = with_secret(link["secret"])
    assert shown.get("/walls/hall").status_code == 200
    assert caller("operator").delete(f"/walls/hall/links/{link['id']}").status_code == 204
    assert "revoked" in assert_problem(shown.get("/walls/hall"), 401)["detail"]
    assert_problem(caller("operator").delete(f"/walls/hall/links/{link['id']}"), 404)
    assert caller("operator").get("/walls/hall/links").json() == []
    assert [audited(f"wall.{action}") for action in ("share", "revoke")] == [1, 1]


def test_a_link_is_revoked_at_its_own_wall_alone(caller: Call) -> None:
    made(caller)
    made(caller, "Other")
    link = linked(caller, "hall")
    assert_problem(caller("operator").delete(f"/walls/other/links/{link['id']}"), 404)
    assert with_secret(link["secret"]).get("/walls/hall").status_code == 200


def test_a_link_ends_after_30_days_without_use(caller: Call) -> None:
    made(caller)
    link = linked(caller, "hall")
    shown = with_secret(link["secret"])

    def last(**ago: int) -> None:
        WallLink.objects.update(last_used_at=timezone.now() - timedelta(**ago))

    last(days=29, hours=23)
    assert shown.get("/walls/hall").status_code == 200
    used = WallLink.objects.get().last_used_at
    assert used is not None
    assert timezone.now() - used < timedelta(hours=1)
    last(minutes=50)
    noted = WallLink.objects.get().last_used_at
    assert shown.get("/walls/hall").status_code == 200
    assert WallLink.objects.get().last_used_at == noted  # written at most once an hour
    last(days=30)
    assert_problem(shown.get("/walls/hall"), 401)
    assert caller("operator").get("/walls/hall/links").json() == []
    WallLink.objects.update(last_used_at=None, created_at=timezone.now() - timedelta(days=30))
    assert_problem(shown.get("/walls/hall"), 401)  # it was never used
    linked(caller, "hall")
    assert WallLink.objects.count() == 1  # the ended one is gone


def test_a_link_ends_with_its_wall(caller: Call) -> None:
    made(caller)
    shown = by_link(caller, "hall")
    caller("operator").delete("/walls/hall")
    made(caller)  # another wall of the same id
    assert_problem(shown.get("/walls/hall"), 401)


def test_a_link_counts_also_where_somebody_has_signed_in(caller: Call, users: dict[str, User]) -> None:
    made(caller)
    made(caller, "Other")
    secret = linked(caller, "hall")["secret"]
    signed_in = caller("operator").http
    answer = signed_in.get(f"{PREFIX}/walls/other", headers={"Authorization": f"Bearer {secret}"})
    assert answer.status_code == 403
    answer = signed_in.get(f"{PREFIX}/walls/other", headers={"Authorization": "Bearer fogline_wall_x"})
    assert answer.status_code == 401
    assert Wall.objects.count() == 2
