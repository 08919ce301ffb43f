"""Signing in, API tokens, accounts."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from tests.contract.web.conftest import PASSWORD, Caller
from tests.contract.web.test_permissions import assert_problem
from webapp.accounts.models import ApiToken, FailedLogin, User
from webapp.accounts.tokens import hash_secret
from webapp.audit.models import AuditRecord

LOGIN = "/accounts/login/"
LIMIT_S = 60.0


def sign_in(client: Client, username: str, password: str, **extra: Any) -> Any:
    return client.post(LOGIN, {"username": username, "password": password}, **extra)


@pytest.fixture
def token(caller: Callable[[str | None], Caller]) -> str:
    response = caller("operator").post("/tokens", {"name": "script"})
    assert response.status_code == 201
    secret: str = response.json()["token"]
    return secret


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_a_token_is_shown_once_and_kept_only_as_its_hash(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    row = ApiToken.objects.get()
    assert row.hash == hash_secret(token)
    assert token not in str(ApiToken.objects.values().get())
    assert "token" not in caller("operator").get("/tokens").json()[0]
    assert token not in str(list(AuditRecord.objects.values()))


def test_a_token_has_its_owners_rights_and_needs_no_csrf_token(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    nobody = Caller(Client(enforce_csrf_checks=True))
    assert nobody.get("/me", **bearer(token)).json()["role"] == "operator"
    assert nobody.get("/audit", **bearer(token)).status_code == 200
    assert_problem(nobody.post("/pipelines", {"name": "x"}, **bearer(token)), 403)


def test_a_token_makes_no_other_that_would_outlive_it(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    assert_problem(caller(None).post("/tokens", {"name": "another"}, **bearer(token)), 403)
    assert ApiToken.objects.count() == 1


def test_a_revoked_or_unknown_token_lets_nobody_in_even_beside_a_session(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    owner = caller("operator")
    assert owner.delete(f"/tokens/{ApiToken.objects.get().pk}").status_code == 204
    for secret in (token, "fogline_wrong", ""):
        assert_problem(caller(None).get("/me", **bearer(secret)), 401)
    assert_problem(owner.get("/me", **bearer(token)), 401)


def test_nobody_revokes_anothers_token_but_an_admin(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    id = ApiToken.objects.get().pk
    assert_problem(caller("editor").delete(f"/tokens/{id}"), 404)
    assert caller("admin").delete(f"/tokens/{id}").status_code == 204


def test_a_token_of_an_account_that_is_switched_off_does_nothing(
    caller: Callable[[str | None], Caller], token: str
) -> None:
    response = caller("admin").call("PATCH", "/users/operator-user", {"active": False})
    assert response.status_code == 200
    assert_problem(caller(None).get("/me", **bearer(token)), 401)


def test_a_session_needs_its_csrf_token_to_change_something(users: dict[str, User]) -> None:
    """And whoever lacks it is told so in a word that a page understands."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(users["admin"])
    me = Caller(client).get("/me").json()
    assert assert_problem(Caller(client).post("/pipelines", {"name": "mine"}), 403)["code"] == "csrf"
    response = Caller(client).post("/pipelines", {"name": "mine"}, **{"X-CSRFToken": me["csrf"]})
    assert response.status_code == 201


def test_signing_in_and_out(users: dict[str, User]) -> None:
    client = Client()
    assert client.get("/").status_code == 302
    assert sign_in(client, "viewer-user", "wrong").status_code == 200
    assert client.get("/").status_code == 302
    response = sign_in(client, "viewer-user", PASSWORD)
    assert response.status_code == 302
    assert AuditRecord.objects.filter(action="user.sign_in", username="viewer-user").exists()
    assert client.get("/").status_code == 200
    client.post("/accounts/logout/")
    assert client.get("/").status_code == 302


def test_nobody_is_sent_to_another_site_after_signing_in(users: dict[str, User]) -> None:
    response = Client().post(
        LOGIN, {"username": "viewer-user", "password": PASSWORD, "next": "https://evil.example/"}
    )
    assert response.headers["Location"] == "/"


def test_guessing_is_locked_for_that_name_and_address_even_with_the_right_password(
    users: dict[str, User], settings: Any
) -> None:
    client = Client()
    for _ in range(settings.LOGIN_FAILURES_MAX):
        assert sign_in(client, "admin-user", "wrong").status_code == 200
    response = sign_in(client, "admin-user", PASSWORD)
    assert response.status_code == 429
    assert b"Too many failed attempts" in response.content
    assert client.get("/").status_code == 302
    # Others, and the same one from elsewhere, are not locked out by it.
    assert sign_in(Client(), "viewer-user", PASSWORD).status_code == 302
    assert sign_in(Client(), "admin-user", PASSWORD, REMOTE_ADDR="10.1.1.1").status_code == 302
    settings.LOGIN_LOCK_S = 0
    assert sign_in(client, "admin-user", PASSWORD).status_code == 302


def test_of_guesses_that_come_at_once_no_more_than_the_limit_are_looked_at(
    users: dict[str, User], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All are held where the password would be looked at, until each of the others is there or refused."""
    looked_at, answered, told = 0, 0, threading.Condition()
    guesses = 12

    def hold(*_: Any, **__: Any) -> None:
        nonlocal looked_at
        with told:
            looked_at += 1
            told.notify_all()
            assert told.wait_for(lambda: looked_at + answered == guesses, LIMIT_S)

    def guess(_: int) -> int:
        nonlocal answered
        try:
            status: int = sign_in(Client(), "admin-user", "wrong").status_code
        finally:
            connection.close()
        if status == 429:
            with told:
                answered += 1
                told.notify_all()
        return status

    monkeypatch.setattr("django.contrib.auth.forms.authenticate", hold)
    with ThreadPoolExecutor(guesses) as pool:
        statuses = list(pool.map(guess, range(guesses)))
    assert looked_at <= settings.LOGIN_FAILURES_MAX
    assert statuses.count(429) == guesses - looked_at
    monkeypatch.undo()
    # What was refused does not count: as many as were looked at are noted.
    assert FailedLogin.objects.filter(username="admin-user").count() == looked_at


def test_an_empty_password_between_guesses_does_not_begin_their_count_anew(
    users: dict[str, User], settings: Any
) -> None:
    client = Client()
    for password in ["wrong"] * (settings.LOGIN_FAILURES_MAX - 1) + ["", "wrong"]:
        sign_in(client, "admin-user", password)
    assert sign_in(client, "admin-user", PASSWORD).status_code == 429


def test_an_admin_makes_and_changes_accounts(caller: Callable[[str | None], Caller]) -> None:
    admin = caller("admin")
    body = {"username": "ada", "password": "correct horse battery", "role": "editor"}
    created = admin.post("/users", body)
    assert created.status_code == 201
    assert created.json() == {"username": "ada", "role": "editor", "active": True, "last_login": None}
    assert sign_in(Client(), "ada", "correct horse battery").status_code == 302
    assert admin.call("PATCH", "/users/ada", {"role": "viewer"}).json()["role"] == "viewer"
    assert_problem(admin.post("/users", {**body, "username": "ADA"}), 409)
    problem = assert_problem(admin.post("/users", {"username": "b ad", "password": "short"}), 422)
    assert {fault["path"] for fault in problem["faults"]} == {"username", "password"}
    assert_problem(admin.call("PATCH", "/users/nobody", {"role": "viewer"}), 404)
    assert_problem(admin.call("PATCH", "/users/ada", {"role": "king"}), 422)
    actions = set(AuditRecord.objects.filter(target="ada").values_list("action", flat=True))
    assert {"user.create", "user.change"} <= actions


def test_the_last_admin_stays_one(caller: Callable[[str | None], Caller]) -> None:
    for change in ({"role": "viewer"}, {"active": False}):
        assert_problem(caller("admin").call("PATCH", "/users/admin-user", change), 409)
    assert User.objects.get(username="admin-user").role == "admin"


def test_a_changed_password_ends_the_accounts_sessions_and_tokens(
    caller: Callable[[str | None], Caller],
) -> None:
    viewer = caller("viewer")
    assert viewer.post("/tokens", {"name": "mine"}).status_code == 201
    change = {"password": "another good passphrase"}
    assert caller("admin").call("PATCH", "/users/viewer-user", change).status_code == 200
    assert_problem(viewer.get("/me"), 401)
    assert not ApiToken.objects.exists()


# --- the account page ---------------------------------------------------------------------------
def submit(client: Client, form: str, **fields: str) -> Any:
    return client.post("/accounts/", {"form": form, **fields})


def test_one_changes_ones_own_password_and_stays_signed_in_here_only(users: dict[str, User]) -> None:
    here, elsewhere = Client(), Client()
    for client in (here, elsewhere):
        sign_in(client, "viewer-user", PASSWORD)
    assert submit(here, "password", old="wrong", password="a new passphrase").status_code == 422
    assert submit(here, "password", old=PASSWORD, password="short").status_code == 422
    assert submit(here, "password", old=PASSWORD, password="a new passphrase").status_code == 302
    assert here.get("/accounts/").status_code == 200
    assert elsewhere.get("/accounts/").status_code == 302
    assert sign_in(Client(), "viewer-user", "a new passphrase").status_code == 302
    assert AuditRecord.objects.filter(action="user.password").count() == 1


def test_ones_own_new_password_revokes_ones_own_api_tokens(
    caller: Callable[[str | None], Caller], token: str, users: dict[str, User]
) -> None:
    others = caller("editor").post("/tokens", {"name": "other"}).json()["token"]
    page = caller("operator").http
    assert b"revokes all your API tokens" in page.get("/accounts/").content
    assert submit(page, "password", old="wrong", password="a new passphrase").status_code == 422
    assert Caller(Client()).get("/me", **bearer(token)).status_code == 200
    response = page.post("/accounts/", {"form": "password", "old": PASSWORD, "password": "a new passphrase"})
    assert b"are revoked" in page.get(response.headers["Location"]).content
    assert_problem(Caller(Client()).get("/me", **bearer(token)), 401)
    assert Caller(Client()).get("/me", **bearer(others)).status_code == 200
    assert AuditRecord.objects.get(action="user.password").detail == {"revoked_tokens": 1}


@pytest.mark.parametrize("form", ["password", "token", "revoke", "user", "change", "none", "\0"])
def test_a_form_with_hostile_fields_is_refused_or_ignored(
    caller: Callable[[str | None], Caller], form: str
) -> None:
    admin = caller("admin").http
    for hostile in ("\0", "9" * 5000, "\u0663" * 400, "x" * 100_000):
        names = ("id", "name", "username", "password", "old", "role")
        response = submit(admin, form, **dict.fromkeys(names, hostile))
        assert response.status_code < 500


def test_a_token_made_on_the_page_is_shown_in_that_answer_only(
    caller: Callable[[str | None], Caller],
) -> None:
    client = caller("viewer").http
    made = submit(client, "token", name="script")
    secret = re.search(rb'id="secret">([^<]+)<', made.content)
    assert secret is not None
    assert caller(None).get("/me", **bearer(secret.group(1).decode())).status_code == 200
    assert secret.group(1) not in client.get("/accounts/").content
    submit(client, "revoke", id=str(ApiToken.objects.get().pk))
    assert not ApiToken.objects.exists()


def test_only_an_admin_sees_and_changes_accounts_on_the_page(
    caller: Callable[[str | None], Caller],
) -> None:
    editor, admin = caller("editor").http, caller("admin").http
    assert b"operator-user" not in editor.get("/accounts/").content
    fields = {"username": "ada", "password": "correct horse battery", "role": "operator"}
    assert submit(editor, "user", **fields).status_code == 403
    assert submit(editor, "change", username="editor-user", role="admin", active="on").status_code == 403
    assert User.objects.get(username="editor-user").role == "editor"
    assert b"operator-user" in admin.get("/accounts/").content
    assert submit(admin, "user", **fields).status_code == 302
    assert submit(admin, "change", username="ada", role="viewer").status_code == 302
    ada = User.objects.get(username="ada")
    assert (ada.role, ada.is_active) == ("viewer", False)
