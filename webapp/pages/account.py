"""/accounts/: a user's password and API tokens, and all accounts for admins. Plain forms."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from webapp.accounts import actions
from webapp.accounts.models import ApiToken, Role, User
from webapp.pages.views import view_context
from webapp.problems import Fault, Invalid, Problem

Shown = dict[str, Any]


@login_required
@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def account(request: HttpRequest) -> HttpResponse:
    user = request.user
    assert isinstance(user, User)
    shown: Shown = {}
    status = 200
    if request.method == "POST":
        form = request.POST.get("form", "")
        try:
            _check_text(request.POST)
            shown = FORMS[form](request, user, request.POST) if form in FORMS else {}
        except Problem as problem:
            shown, status = {"form": form, "problem": problem, "given": request.POST}, problem.status
        if not shown:
            # So that a reload does not send the form again.
            return redirect(f"/accounts/?done={form}" if form in FORMS else "/accounts/")
    context = {
        **view_context(request, "account", "Your account"),
        "tokens": ApiToken.objects.filter(user=user),
        "accounts": User.objects.order_by("username") if user.may(Role.ADMIN) else None,
        "roles": Role.choices,
        "done": DONE.get(request.GET.get("done", "")),
        **shown,
    }
    return render(request, "accounts/account.html", context, status=status)


def _check_text(data: QueryDict) -> None:
    for name, value in data.items():
        if "\0" in name or "\0" in str(value):
            fault: Fault = {
                "element": None,
                "path": name,
                "message": "has a NUL character",
                "code": "invalid",
            }
            raise Invalid(
                "The form has a NUL character.",
                safe="Nothing was changed.",
                next="Remove it, then send the form again.",
                faults=[fault],
            )


def _change_password(request: HttpRequest, user: User, data: QueryDict) -> Shown:
    actions.change_own_password(user, data.get("old", ""), data.get("password", ""))
    user.refresh_from_db()
    update_session_auth_hash(request, user)  # this session goes on, the others end
    return {}


def _create_token(request: HttpRequest, user: User, data: QueryDict) -> Shown:
    name = data.get("name", "").strip()[:80] or "unnamed"
    token, secret = actions.create_token(user, name)
    # Shown in the answer itself, so that it is stored in no session and no address.
    return {"secret": secret, "secret_name": token.name}


def _revoke_token(request: HttpRequest, user: User, data: QueryDict) -> Shown:
    id = data.get("id", "")
    actions.revoke_token(user, int(id) if re.fullmatch(r"\d{1,18}", id) else 0)
    return {}


def _create_user(request: HttpRequest, user: User, data: QueryDict) -> Shown:
    actions.create_user(user, data.get("username", ""), data.get("password", ""), data.get("role", ""))
    return {}


def _change_user(request: HttpRequest, user: User, data: QueryDict) -> Shown:
    actions.change_user(
        user,
        data.get("username", ""),
        role=data.get("role"),
        active="active" in data,
        password=data.get("password") or None,
    )
    return {}


FORMS: dict[str, Callable[[HttpRequest, User, QueryDict], Shown]] = {
    "password": _change_password,
    "token": _create_token,
    "revoke": _revoke_token,
    "user": _create_user,
    "change": _change_user,
}
DONE = {
    "password": "Your password is changed. Your other sessions have ended and your API tokens are "
    "revoked: make new tokens for your scripts.",
    "revoke": "The token is revoked. It gives no access any more.",
    "user": "The account was created.",
    "change": "The account was changed.",
}
