"""Signing in, with a lock after too many failures."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webapp.accounts.models import FailedLogin, User
from webapp.audit.records import audit


def attempt(username: str, address: str) -> bool:
    """Stores an attempt. Returns whether its password may be checked, because there were not too many
    attempts lately.

    First stores the attempt, and then counts. So of several attempts at the same moment, the k-th one stored
    counts at least k, and no database lets more than the limit pass. Some of these may be refused although
    the limit is not reached yet. A refused attempt does not count: otherwise a user who keeps trying would
    stay locked out.
    """
    now = timezone.now()
    FailedLogin.objects.filter(at__lt=now - timedelta(days=1)).delete()
    own = FailedLogin.objects.create(username=username[:150], address=address)
    lately = FailedLogin.objects.filter(
        address=address, at__gte=now - timedelta(seconds=settings.LOGIN_LOCK_S)
    )
    allowed = (
        lately.filter(username=own.username).count() <= settings.LOGIN_FAILURES_MAX
        and lately.count() <= settings.LOGIN_FAILURES_PER_ADDRESS_MAX
    )
    if not allowed:
        own.delete()
    return allowed


class SignInForm(AuthenticationForm):
    error_messages = {
        "invalid_login": "The user name or the password is wrong. Upper and lower case matter in both.",
        "inactive": "This account is switched off. Ask an admin.",
        "locked": "Too many failed attempts. Wait %(minutes)d minutes, then try again.",
    }

    def clean(self) -> dict[str, Any]:
        assert self.request is not None
        username, address = str(self.cleaned_data.get("username", "")), address_of(self.request)
        if not attempt(username, address):
            raise ValidationError(
                self.error_messages["locked"],
                code="locked",
                params={"minutes": max(1, round(settings.LOGIN_LOCK_S / 60))},
            )
        cleaned = super().clean()
        if self.user_cache is not None:  # without a user no password was checked
            FailedLogin.objects.filter(username=username, address=address).delete()
        return cleaned


class SignInView(LoginView):
    template_name = "accounts/login.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True
    extra_context = {"title": "Sign in"}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        user = form.get_user()
        assert isinstance(user, User)
        audit(user, "user.sign_in", user.username, address=address_of(self.request))
        return super().form_valid(form)

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        locked_out = any(error.code == "locked" for error in form.non_field_errors().as_data())
        return self.render_to_response(self.get_context_data(form=form), status=429 if locked_out else 200)


def address_of(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))[:45]
