"""The connection to a schema registry."""

from __future__ import annotations

import base64
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from pipeline_runtime.model.faults import words_for_pattern
from pipeline_runtime.operators.connections import CA, CERTIFICATE, PRIVATE_KEY, ConnectionFields, Secret

_URL = words_for_pattern(
    r"^https?://([A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(:\d{1,5})?(/[A-Za-z0-9._~/-]{0,500})?$",
    "an address of a schema registry is such as https://registry.plant.example:8081, without a user name",
)


class SchemaRegistryConnection(ConnectionFields):
    """How to reach a schema registry that speaks Confluent's protocol."""

    kind = "schema-registry"
    title = "Schema registry"
    probe = "pipeline_runtime.connectors.schema_registry:probe"

    url: str = Field(pattern=_URL, title="Address", description="such as https://registry.plant.example:8081")
    user: str | None = Field(default=None, max_length=200, title="User name")
    password: Secret | None = Field(default=None, title="Password")
    token: Secret | None = Field(
        default=None, title="Token", description="sent as Authorization: Bearer; instead of a user name"
    )
    ca: str | None = CA
    certificate: str | None = CERTIFICATE
    private_key: Secret | None = PRIVATE_KEY

    @model_validator(mode="after")
    def _login(self) -> SchemaRegistryConnection:
        if self.token is not None and (self.user or self.password):
            raise ValueError("give a token, or a user name and a password, and not both")
        if bool(self.user) != bool(self.password):
            raise ValueError("a login needs a user name and a password")
        if self.user is not None and ":" in self.user:
            raise ValueError("a user name has no colon")
        if bool(self.certificate) != bool(self.private_key):
            raise ValueError("an own certificate needs its private key, and the other way round")
        if not self.tls and (self.ca or self.certificate):
            raise ValueError("certificates need an address that begins with https://")
        # The message must not hold the value.
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise ValueError("a token has no line breaks and only ASCII characters")
        return self

    @property
    def hosts(self) -> tuple[str, ...]:
        host = urlsplit(self.url).hostname
        return (host,) if host else ()

    @property
    def where(self) -> str:
        return f"the schema registry {self.url}"

    @property
    def tls(self) -> bool:
        return self.url.startswith("https:")

    @property
    def base_url(self) -> str:
        return self.url.rstrip("/")

    @property
    def headers(self) -> dict[str, str]:
        """Returns what each request has besides its own."""
        found = {"Accept-Encoding": "identity"}  # unpacked, an answer could be of any size
        if self.token is not None:
            found["Authorization"] = f"Bearer {self.token}"
        elif self.user and self.password:
            login = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
            found["Authorization"] = f"Basic {login}"
        return found
