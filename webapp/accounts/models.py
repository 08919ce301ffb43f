"""Users with one role each, and their API tokens (stored as hashes)."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser, UserManager
from django.db import models


class Role(models.TextChoices):
    """The role of a user. Each role may do everything that the role before it may do."""

    VIEWER = "viewer", "Viewer: sees everything, changes nothing"
    OPERATOR = "operator", "Operator: moves, restores, pauses; cordons and drains nodes; changes walls"
    EDITOR = "editor", "Editor: draws, deploys and undeploys pipelines, uploads files"
    ADMIN = "admin", "Admin: accounts, enrolment and removal of nodes"

    @property
    def rank(self) -> int:
        return list(Role).index(self)

    def covers(self, needed: Role) -> bool:
        return self.rank >= needed.rank


class FoglineUserManager(UserManager["User"]):
    def create_superuser(
        self, username: str, email: str | None = None, password: str | None = None, **extra: object
    ) -> User:
        extra.setdefault("role", Role.ADMIN)
        return super().create_superuser(username, email, password, **extra)


class User(AbstractUser):
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.VIEWER)

    objects = FoglineUserManager()

    def may(self, needed: Role) -> bool:
        return self.is_active and Role(self.role).covers(needed)


class ApiToken(models.Model):
    """`hash` is the SHA-256 of the token, which itself is shown once and never stored."""

    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=80)
    hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]

    def __str__(self) -> str:
        return f"{self.user}: {self.name}"


class FailedLogin(models.Model):
    """A login that failed. Counting these slows down guessing. They are in the database, so the count holds
    for all processes, even without Redis."""

    username = models.CharField(max_length=150)
    address = models.CharField(max_length=45)
    at = models.DateTimeField(auto_now_add=True, db_index=True)

    def __str__(self) -> str:
        return f"{self.username} from {self.address}"
