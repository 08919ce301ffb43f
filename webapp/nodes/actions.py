"""Changes of nodes: invitation, enrolment, site, cordon, drain."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from pipeline_runtime.settings import NODE_NAME
from pipeline_runtime.wire import tasks
from webapp.accounts.models import Role, User
from webapp.accounts.permissions import require
from webapp.accounts.tokens import hash_secret, new_secret
from webapp.audit.announcements import announce
from webapp.audit.records import audit, record_event
from webapp.backends import commands
from webapp.nodes.models import EnrolmentToken, Node
from webapp.nodes.schemas import Admission
from webapp.nodes.selectors import node_named
from webapp.problems import Conflict, Fault, Invalid, Unauthenticated

TOKEN_LIFETIME = timedelta(hours=1)
SITE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,39}")
SITE_ALLOWED = "up to 40 letters, digits, spaces, dots, hyphens and underscores"


@dataclass(frozen=True)
class Machine:
    """What a machine says about itself when it joins."""

    name: str
    version: str
    cores: int
    url: str


@transaction.atomic
def invite(actor: User, name: str) -> tuple[EnrolmentToken, str]:
    """Returns a one-time token that admits one machine as `name`, and its text, which is not stored."""
    require(actor, Role.ADMIN, "add nodes")
    check_name(name)
    if Node.objects.filter(name=name, up=True).exists():
        raise Conflict(f'A node "{name}" exists already and is running.', next="Choose another name.")
    secret = new_secret()
    token = EnrolmentToken.objects.create(
        node_name=name,
        hash=hash_secret(secret),
        expires_at=timezone.now() + TOKEN_LIFETIME,
        created_by=actor,
    )
    audit(actor, "node.invite", name, expires_at=token.expires_at.isoformat())
    return token, secret


@transaction.atomic
def enrol(secret: str, machine: Machine) -> Node:
    """Admits a machine with its token."""
    token = EnrolmentToken.objects.select_for_update().filter(hash=hash_secret(secret)).first()
    reason = "is not known" if token is None else _unusable(token)
    if token is None or reason is not None:
        raise Unauthenticated(
            f"This enrolment token {reason}.",
            safe="Nothing was changed.",
            next="Ask an admin for a new one: Nodes, Add a machine.",
        )
    if token.node_name != machine.name:
        raise Conflict(
            f'This token admits "{token.node_name}", not "{machine.name}".',
            safe="The token can still be used.",
            next=f"Start the node with --name {token.node_name}.",
        )
    if machine.version != settings.FOGLINE_VERSION:
        raise Conflict(
            f"This machine has Fogline {machine.version}, the cluster has {settings.FOGLINE_VERSION}.",
            safe="The token can still be used.",
            next=f"Install Fogline {settings.FOGLINE_VERSION} on it, then start it again.",
            version=settings.FOGLINE_VERSION,
            code="version-differs",
        )
    existing = Node.objects.filter(name=machine.name).first()
    if existing is not None and existing.up:
        raise Conflict(
            f'A node "{machine.name}" exists already and is running.',
            safe="The running node is not affected. The token can still be used.",
            next="Stop that node first, or ask an admin for a token with another name.",
        )
    token.used_at = timezone.now()
    token.save(update_fields=["used_at"])
    audit(token.created_by, "node.enrol", machine.name, url=machine.url, version=machine.version)
    return _admit(machine)


def _admit(machine: Machine) -> Node:
    """Registers a machine, or one that comes back under its old name."""
    node, created = Node.objects.update_or_create(
        name=machine.name,
        defaults={
            "url": machine.url,
            "version": machine.version,
            "cores": machine.cores,
        },
    )
    record_event(
        "node.enrolled",
        f"The node {machine.name} was {'added' if created else 'added again'}.",
        node=machine.name,
    )
    announce()
    return node


def admission_document(name: str, central_url: str) -> Admission:
    """Returns everything that a node needs to take part. The result holds secrets, so send it only over TLS
    or on this machine."""
    fogline = settings.FOGLINE
    return {
        "node": name,
        "version": settings.FOGLINE_VERSION,
        "kafka": {"bootstrap": fogline.kafka, "security": dict(fogline.kafka_security)},
        "redis_url": fogline.redis_url,
        "cluster_key": fogline.cluster_key,
        "central_url": central_url,
        "checkpoint_s": fogline.checkpoint_s,
        "checkpoint_batches": fogline.checkpoint_batches,
        "checkpoints_kept": fogline.node_checkpoints_kept,
        "checkpoints_hours": fogline.node_checkpoints_hours,
    }


@transaction.atomic
def set_cordoned(actor: User, name: str, cordoned: bool) -> Node:
    """Cordons or uncordons the node. A cordoned node takes nothing new, and what runs there goes on. A second
    call changes nothing.

    Uncordoning a node ends its drain. A group that is moving ends its move, and no other group leaves.
    """
    doing = "cordon" if cordoned else "uncordon"
    require(actor, Role.OPERATOR, f"{doing} nodes")
    node = _locked(name)
    if node.cordoned != cordoned:
        drained = node.draining_since is not None
        node.cordoned, node.draining_since, node.drain_blocked = cordoned, None, ""
        node.save(update_fields=["cordoned", "draining_since", "drain_blocked"])
        audit(actor, f"node.{doing}", name, **({"drain": "cancelled"} if drained else {}))
        if drained:
            text = (
                f"{name} is no longer drained. Elements that have moved stay where they are now; "
                f"the others stay on {name}."
            )
            record_event("node.drain_cancelled", text, node=name)
        announce()
    return node


@transaction.atomic
def set_site(actor: User, name: str, site: str) -> Node:
    """Sets the site of the node. With an empty site, the node is a site of its own. Fogline assumes that
    nodes of one site fail together, so backups go to another site."""
    require(actor, Role.OPERATOR, "say where nodes stand")
    site = " ".join(site.split())
    if site and not SITE.fullmatch(site):
        raise _no_name(site, "site", "site", SITE_ALLOWED)
    node = _locked(name)
    if node.site != site:
        audit(actor, "node.site", name, site=site, before=node.site)
        node.site = site
        node.save(update_fields=["site"])
        announce()
    return node


@transaction.atomic
def drain(actor: User, name: str) -> Node:
    """Cordons the node, and lets control move everything off it: the row asks for that until the node is
    empty. A second call tries again to move groups that could not move, and leaves alone a group that is
    moving."""
    require(actor, Role.OPERATOR, "drain nodes")
    node = _locked(name)
    if not any(other.takes_new for other in Node.objects.filter(up=True).exclude(pk=node.pk)):
        raise Conflict(
            f'"{name}" cannot be drained: no other node is running and takes new elements.',
            safe="Nothing was changed.",
            next="Add or uncordon a node first.",
        )
    node.cordoned, node.draining_since, node.drain_blocked = True, timezone.now(), ""
    node.save(update_fields=["cordoned", "draining_since", "drain_blocked"])
    audit(actor, "node.drain", name)
    commands.send(tasks.LOOK)
    announce()
    return node


def check_name(name: str) -> None:
    if not NODE_NAME.fullmatch(name):
        raise _no_name(name, "node", "name", "up to 40 lower-case letters, digits and inner hyphens")


def _no_name(name: str, of: str, path: str, allowed: str) -> Invalid:
    fault: Fault = {"element": None, "path": path, "message": allowed, "code": "invalid"}
    return Invalid(
        f'"{name[:60]}" is not a name for a {of}.',
        safe="Nothing was changed.",
        next=f"Choose another name: {allowed}.",
        faults=[fault],
    )


def _locked(name: str) -> Node:
    """Returns the node, and locks it: control does not look at the node's drain until this transaction has
    ended."""
    node_named(name)
    return Node.objects.select_for_update(no_key=True).get(name=name)


def _unusable(token: EnrolmentToken) -> str | None:
    if token.revoked_at is not None:
        return "was revoked"
    if token.used_at is not None:
        return "was used already"
    return "has expired" if token.expires_at <= timezone.now() else None
