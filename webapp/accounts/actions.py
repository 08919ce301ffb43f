"""Changes of accounts and API tokens."""

from __future__ import annotations

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction

from webapp.accounts.models import ApiToken, Role, User
from webapp.accounts.permissions import require
from webapp.accounts.tokens import API_PREFIX, hash_secret, new_secret
from webapp.audit.records import audit
from webapp.problems import CORRECT, Conflict, Fault, Invalid, Missing


@transaction.atomic
def create_user(actor: User, username: str, password: str, role: str) -> User:
    require(actor, Role.ADMIN, "create accounts")
    user = User(username=username, role=_role(role))
    _check(user, password)
    if User.objects.filter(username__iexact=username).exists():
        raise Conflict(f'An account "{username}" exists already.', next="Choose another name.")
    user.set_password(password)
    user.save()
    audit(actor, "user.create", username, role=user.role)
    return user


@transaction.atomic
def change_user(
    actor: User, username: str, *, role: str | None, active: bool | None, password: str | None
) -> User:
    """Changes another user's role, activity or password. The last active admin stays one."""
    require(actor, Role.ADMIN, "change accounts")
    user = User.objects.select_for_update().filter(username=username).first()
    if user is None:
        raise Missing(f'There is no account "{username}".', next="See the list of accounts.")
    was_admin = user.may(Role.ADMIN)
    if role is not None:
        user.role = _role(role)
    if active is not None:
        user.is_active = active
    if password is not None:
        _check(user, password)
        user.set_password(password)  # also ends the account's sessions
        user.tokens.all().delete()  # a person who had the old password may have made some
    others = User.objects.filter(role=Role.ADMIN, is_active=True).exclude(pk=user.pk)
    if was_admin and not user.may(Role.ADMIN) and not others.exists():
        raise Conflict(
            f'"{username}" is the only admin.', safe="Nothing was changed.", next="Make another one first."
        )
    user.save()
    audit(actor, "user.change", username, role=role, active=active, password=password is not None)
    return user


@transaction.atomic
def change_own_password(actor: User, old: str, new: str) -> None:
    """Sets the password, ends the account's other sessions and revokes its API tokens. People change a
    password when somebody else may know it, and that person may have made tokens."""
    require(actor, Role.VIEWER, "change passwords")
    user = User.objects.select_for_update().get(pk=actor.pk)
    if not user.check_password(old):
        fault: Fault = {
            "element": None,
            "path": "old",
            "message": "This is not your password.",
            "code": "password",
        }
        raise Invalid(
            "The present password is wrong.",
            safe="Nothing was changed.",
            next="Enter the password with which you signed in.",
            faults=[fault],
        )
    _check(user, new)
    user.set_password(new)
    user.save(update_fields=["password"])
    revoked, _ = user.tokens.all().delete()
    audit(user, "user.password", user.username, revoked_tokens=revoked)


@transaction.atomic
def create_token(actor: User, name: str) -> tuple[ApiToken, str]:
    """Makes a token with its owner's rights. Returns the token and its text, which is stored nowhere."""
    require(actor, Role.VIEWER, "create API tokens")
    secret = new_secret(API_PREFIX)
    token = ApiToken.objects.create(user=actor, name=name, hash=hash_secret(secret))
    audit(actor, "token.create", name, id=token.pk)
    return token, secret


@transaction.atomic
def revoke_token(actor: User, id: int) -> None:
    """Revokes one of the actor's own tokens. An admin may revoke anybody's token."""
    require(actor, Role.VIEWER, "revoke API tokens")
    token = ApiToken.objects.filter(pk=id).first()
    # To other users the token does not even exist.
    if token is None or (token.user_id != actor.pk and not actor.may(Role.ADMIN)):
        raise Missing(f"You have no API token {id}.", next="See your API tokens under Account.")
    audit(actor, "token.revoke", token.name, id=id, owner=token.user.username)
    token.delete()


def _role(role: str) -> str:
    if role not in Role.values:
        raise Invalid(
            f'There is no role "{role}".',
            safe="Nothing was changed.",
            next=f"Choose one of {', '.join(Role.values)}.",
            faults=[
                {
                    "element": None,
                    "path": "role",
                    "code": "invalid",
                    "message": "one of " + ", ".join(Role.values),
                }
            ],
        )
    return role


def _check(user: User, password: str) -> None:
    faults = []
    try:
        user.password = "-"  # noqa: S105  set below, when it has been checked
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        for field, messages in error.message_dict.items():
            faults += [
                {"element": None, "path": field, "message": message, "code": "invalid"}
                for message in messages
            ]
    try:
        validate_password(password, user)
    except ValidationError as error:
        faults += [
            {"element": None, "path": "password", "message": message, "code": "password"}
            for message in error.messages
        ]
    if faults:
        raise Invalid(
            "The account's data is not valid.", safe="Nothing was changed.", next=CORRECT, faults=faults
        )
