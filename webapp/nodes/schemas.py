"""Responses about nodes."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from webapp.json_types import Allowed, Number


class NodeLoad(TypedDict, total=False):
    cpu_ratio: Number
    memory_bytes: Number
    java_bytes: Number
    """of these, Java's"""
    memory_total_bytes: Number
    memory_ratio: Number
    disk_free_bytes: Number
    disk_ratio: Number
    battery_ratio: Number | None
    on_battery: bool | None


class NodeAlert(TypedDict):
    message: str
    since: str


class Moving(TypedDict):
    pipeline: str
    element: str
    target: str


class DrainProgress(TypedDict):
    """In groups."""

    moved: int
    total: int
    moving: Moving | None


class HostedElement(TypedDict):
    pipeline: str
    element: str
    title: str
    group: str
    role: str


class Node(TypedDict):
    name: str
    up: bool
    heard: bool
    """false when control hears no node, so that a node that is not up may be running"""
    ready: bool
    cordoned: bool
    draining: bool
    """everything that it runs is moved away, one group after another, until it is empty or uncordoned"""
    draining_since: str | None
    drain_blocked: str | None
    """which groups cannot leave now, and why; null if all can"""
    leaving_until: str | None
    """it was told to stop, and hands over what it owns until then at the latest; null if it is not leaving"""
    maintenance_until: str | None
    """a policy wants it empty until then, and it takes nothing new; null if none does"""
    url: str
    version: str
    version_wanted: str
    cores: int
    site: str
    """where it stands; a node without a site counts as a site of its own"""
    enrolled_at: str
    last_seen_at: str | None
    silent_at: str | None
    """when it was found silent; null if it is heard, or was stopped"""
    alerts: list[NodeAlert]
    """what it reports to be wrong with itself now"""
    load: NodeLoad | None
    elements: list[HostedElement]
    remove: Allowed
    drain: DrainProgress | None
    """how far its drain or its leaving has come; null if it does neither"""


class NodePoint(TypedDict):
    t: int
    """when it was reported, ms since the epoch"""
    cpu_ratio: NotRequired[Number | None]
    memory_bytes: NotRequired[Number | None]
    memory_ratio: NotRequired[Number | None]
    disk_ratio: NotRequired[Number | None]
    battery_ratio: NotRequired[Number | None]


class NodeHistory(TypedDict):
    points: list[NodePoint]


class GivenMatrix(TypedDict):
    """A matrix that a person gave. Empty if there is none."""

    sites: list[str]
    rows: list[list[Number]]
    """latencies in ms, or rates in Mbit/s, from the site of the row to that of the column, in the order of
    `sites`"""
    unknown: list[str]
    """those of the sites that have no node"""


class MapNode(TypedDict):
    name: str
    up: bool
    cordoned: bool
    cores: int
    cpu_ratio: Number | None
    memory_bytes: Number | None
    memory_total_bytes: Number | None
    battery_ratio: Number | None


class MapSource(TypedDict):
    """An element that reads data from outside."""

    pipeline: str
    element: str
    title: str
    node: str


class MapSite(TypedDict):
    name: str
    """a node without a site is a site of its own, under its own name"""
    named: bool
    """false for such a node"""
    nodes: list[MapNode]
    sources: list[MapSource]


class MapLink(TypedDict):
    """From one site to another. There is one in each direction."""

    a: str
    b: str
    latency_ms: Number | None
    """one way; null if no probe gets through"""
    bytes_per_s: Number | None
    """null if it was not measured"""
    source: Literal["measured", "given"]
    """of the latency"""
    rate_given: bool
    """given by a person; otherwise it is measured"""
    measured_at: str | None
    unreachable_since: str | None
    """since when no probe between the two gets through; null if one does, or nobody probes"""


class MapBroker(TypedDict):
    """From a site to the Kafka broker."""

    site: str
    latency_ms: Number
    """one way"""
    measured_at: str


class Map(TypedDict):
    sites: list[MapSite]
    broker: list[MapBroker]
    """for the sites for which it was measured"""
    links: list[MapLink]
    given: GivenMatrix
    """latencies"""
    given_rates: GivenMatrix


class Invited(TypedDict):
    name: str
    token: str
    """shown only this once"""
    expires_at: str
    command: str
    version: str
    url: str
    kafka: str
    central_url: str
    warnings: list[str]


class AdmissionKafka(TypedDict):
    bootstrap: str
    security: dict[str, Any]


class Admission(TypedDict):
    """What a node has to know to take part. It holds secrets."""

    node: str
    version: str
    kafka: AdmissionKafka
    redis_url: str
    cluster_key: str
    central_url: str
    checkpoint_s: Number
    checkpoint_batches: int
    checkpoints_kept: int
    checkpoints_hours: Number
