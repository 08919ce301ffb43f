"""Responses about nodes."""

from __future__ import annotations

from typing import Any, Literal, NotRequired

from typing_extensions import TypedDict

from webapp.json_types import Allowed, Number


class NodeLoad(TypedDict, total=False):
    cpu_ratio: Number
    memory_bytes: Number
    java_bytes: Number
    """the part of `memory_bytes` that Java takes"""
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
    """The progress of a drain, in numbers of groups."""

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
    """false if control hears no node at all, so that a node that is not up may still run"""
    ready: bool
    cordoned: bool
    draining: bool
    """whether Fogline moves all groups away, one after another, until the node is empty or uncordoned"""
    draining_since: str | None
    drain_blocked: str | None
    """the groups that cannot leave now, and the reasons; null if all can"""
    leaving_until: str | None
    """the latest time until which the leaving node hands over its groups; null if it is not leaving"""
    maintenance_until: str | None
    """the time until which a policy keeps the node empty; null if no policy does"""
    url: str
    version: str
    version_wanted: str
    cores: int
    site: str
    """where the node stands; a node without a site counts as a site of its own"""
    enrolled_at: str
    last_seen_at: str | None
    silent_at: str | None
    """when the node was found silent; null if it is heard, or was stopped"""
    alerts: list[NodeAlert]
    """the problems that the node reports about itself now"""
    load: NodeLoad | None
    elements: list[HostedElement]
    remove: Allowed
    drain: DrainProgress | None
    """the progress of the drain or of the leaving; null if the node does neither"""


class NodePoint(TypedDict):
    t: int
    """when the node reported this, in ms since 1970"""
    cpu_ratio: NotRequired[Number | None]
    memory_bytes: NotRequired[Number | None]
    memory_ratio: NotRequired[Number | None]
    disk_ratio: NotRequired[Number | None]
    battery_ratio: NotRequired[Number | None]


class NodeHistory(TypedDict):
    points: list[NodePoint]


class GivenMatrix(TypedDict):
    """A matrix that a person entered. It is empty if nobody entered one."""

    sites: list[str]
    rows: list[list[Number]]
    """latencies in ms, or rates in Mbit/s: one row for each site from which, one column for each site to
    which, both in the order of `sites`"""
    unknown: list[str]
    """the sites of the matrix that have no node"""


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
    """the name of the site; a node without a site is a site with the node's name"""
    named: bool
    """whether a user named this site; false for the site of a single node"""
    nodes: list[MapNode]
    sources: list[MapSource]


class MapLink(TypedDict):
    """The line from one site to another. There is one in each direction."""

    a: str
    b: str
    latency_ms: Number | None
    """the latency, one way; null if no probe gets through"""
    bytes_per_s: Number | None
    """the rate; null if it was not measured"""
    source: Literal["measured", "given"]
    """where the latency comes from"""
    rate_given: bool
    """whether a person entered the rate; otherwise it is measured"""
    measured_at: str | None
    unreachable_since: str | None
    """since when no probe between the two sites gets through; null if one does, or if no node probes"""


class MapBroker(TypedDict):
    """The line from a site to the Kafka broker."""

    site: str
    latency_ms: Number
    """the latency, one way"""
    measured_at: str


class Map(TypedDict):
    sites: list[MapSite]
    broker: list[MapBroker]
    """the lines to the broker, for the sites for which they were measured"""
    links: list[MapLink]
    given: GivenMatrix
    """the latencies that a person entered"""
    given_rates: GivenMatrix


class Invited(TypedDict):
    name: str
    token: str
    """the token, which is shown only this once"""
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
    """The settings and secrets that a node needs to join."""

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
