"""Deployments of versions, where their groups are to run, and where they do."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.utils import timezone

from pipeline_runtime.model.ids import document_group
from webapp.pipelines.models import Pipeline, PipelineVersion, random_id
from webapp.pipelines.shape import names_of


class Deployment(models.Model):
    """One deployment of one version. `id` is the D in every topic's name, and it is never used again."""

    class Status(models.TextChoices):
        DEPLOYING = "deploying"
        RUNNING = "running"
        UNDEPLOYING = "undeploying"
        UNDEPLOYED = "undeployed"
        FAILED = "failed"

    ACTIVE = (Status.DEPLOYING, Status.RUNNING, Status.UNDEPLOYING)

    id = models.CharField(primary_key=True, max_length=10, default=random_id, editable=False)
    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="deployments")
    version = models.ForeignKey(PipelineVersion, on_delete=models.CASCADE, related_name="deployments")
    # The user's choice, {"<element or group>": "<node>"}. {} leaves it to the document and the planner.
    placement = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=16, choices=Status.choices, default=Status.DEPLOYING)
    message = models.TextField(blank=True)
    # Ids of the groups and elements that were removed while it ran. What they left has these names.
    removed = models.JSONField(default=list)
    # Ids of groups whose elements run in others now. What they left has these names, too.
    former_groups = models.JSONField(default=list)
    # {group: {spec, starts, node, halted}}: what an unfinished or failed upgrade made groups stop reading,
    # and what no group reads yet. The spec is the former one with only these inputs; `starts` and `node` are
    # its placement's. `halted` are its elements that will run in another group, and do not yet.
    left_over = models.JSONField(default=dict)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            # The database itself refuses a second deployment of a pipeline that has one.
            models.UniqueConstraint(
                fields=["pipeline"],
                condition=models.Q(status__in=["deploying", "running", "undeploying"]),
                name="one_active_deployment",
            )
        ]
        indexes = [models.Index(fields=["pipeline", "-created_at"], name="newest_deployments")]

    def __str__(self) -> str:
        return f"{self.pipeline.name} {self.id}"

    def name_of(self, id: str) -> str:
        """Returns the name of one of its elements or groups that users see."""
        return names_of(self.version.document).get(document_group(id), document_group(id))

    @property
    def gone(self) -> set[str]:
        """Returns the ids of groups that are no longer reported, or reported too late."""
        return {*self.removed, *self.former_groups}


class GroupPlacement(models.Model):
    """Where a group is to run: its wanted owner. `group` is the bare id, not `<D>.<group>`."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="placements")
    group = models.CharField(max_length=60)
    spec = models.JSONField()  # GroupSpec
    node = models.ForeignKey("nodes.Node", on_delete=models.PROTECT, related_name="placements")
    role = models.CharField(max_length=16, default="owner")  # "owner" | "stopped"
    order_id = models.CharField(max_length=64, blank=True)  # ClaimOrder.id
    order_over = models.BigIntegerField(default=0)  # ClaimOrder.over, an epoch
    order_rewind = models.BigIntegerField(null=True, blank=True)  # ClaimOrder.rewind, a seq
    order_fresh = models.BooleanField(default=False)  # ClaimOrder.fresh, until this spec has an owner
    order_keeps_state_of = models.JSONField(default=list)  # ClaimOrder.keeps_state_of
    release = models.CharField(max_length=64, blank=True)  # the handover for which the owner releases
    source = models.JSONField(null=True, blank=True)  # CheckpointSource
    paused_at = models.DateTimeField(null=True, blank=True)  # null while it is not paused
    resumed_at = models.DateTimeField(null=True, blank=True)  # when its last pause ended
    retire = models.BooleanField(default=False)  # it has to end for good, and has not confirmed that yet
    closing = models.BooleanField(default=False)  # its ingesters take in nothing more: it will end
    generation = models.PositiveIntegerField(default=1)
    java_ends = models.JSONField(default=list)  # JavaEnd, as nodes have reported them
    # changes when a user asks to start it again; earlier ends do not count then
    vouched = models.CharField(max_length=64, blank=True)
    # WayOn.id of the ways on that a person has chosen, the newest ones
    accepts = models.JSONField(default=list)
    fresh_from = models.BigIntegerField(default=0)  # the newest seq at which its state was begun fresh
    starts = models.JSONField(default=dict)  # ClaimOrder.positions
    # As planned, names of nodes: who holds its checkpoints beside the central store, and where it is to go on
    # when its node fails. Empty: none can.
    backup_node = models.CharField(max_length=40, blank=True, default="")
    recovery_node = models.CharField(max_length=40, blank=True, default="")
    # Why it is there, as recorded when it came there: in words, if by its deployment, else by which handover.
    placed_at = models.DateTimeField(default=timezone.now)
    placed_why = models.TextField(blank=True, default="")
    placed_by = models.CharField(max_length=64, blank=True, default="")
    # [{topic, until}]: topics that earlier specs read. A copy at a seq before `until` still reads the topic;
    # with null, any copy may.
    former_inputs = models.JSONField(default=list)
    # How many rows wait in its input topics, while no replica of it works that says so. Control counts them.
    backlog_rows = models.BigIntegerField(null=True, blank=True)

    class Meta:
        ordering = ["deployment", "group"]
        constraints = [
            models.UniqueConstraint(fields=["deployment", "group"], name="one_placement_per_group")
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id}.{self.group} on {self.node}"

    ORDER = ("order_id", "order_over", "order_rewind")
    """The fields that give_order sets."""

    FRESH = ("order_fresh", "order_keeps_state_of")

    def give_order(self, over: int, *, id: str | None = None, rewind: int | None = None) -> None:
        """Sets another order to own, over that epoch, without saving. Without `id` it is a new one; `rewind`
        leads back to that seq."""
        self.order_id, self.order_over, self.order_rewind = id or uuid.uuid4().hex, over, rewind

    PLACED = ("placed_at", "placed_why", "placed_by")
    """The fields that note_placed sets."""

    def note_placed(self, *, why: str = "", handover: str = "") -> None:
        """Notes that it has come to its node now, for that reason or by that handover. Does not save."""
        self.placed_at, self.placed_why, self.placed_by = timezone.now(), why, handover

    VOUCHED = ("vouched", "java_ends")
    """The fields that vouch sets."""

    def vouch(self) -> None:
        """Notes that a user asks to start it again, whatever it has done. Does not save. A held group is
        started again."""
        self.vouched, self.java_ends = uuid.uuid4().hex, []


class ExtraReplica(models.Model):
    """Another wanted copy of a group beside its placement: a handover's target, a standby that was an owner
    or that a user wants, or an old copy to stop."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="extra_replicas")
    group = models.CharField(max_length=60)
    node = models.ForeignKey("nodes.Node", on_delete=models.CASCADE, related_name="extra_replicas")
    role = models.CharField(max_length=16)  # Role of pipeline_runtime.model.desired
    source = models.JSONField(null=True, blank=True)
    generation = models.PositiveIntegerField(default=1)
    succeed = models.CharField(max_length=64, blank=True)  # the handover whose successor it is to be
    # the handover that made it; it goes when that fails
    handover = models.CharField(max_length=64, blank=True)
    wanted = models.BooleanField(default=False)  # a user wants a hot standby here
    until = models.DateTimeField(null=True, blank=True)  # dropped then; kept when it is null

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["deployment", "group", "node"], name="one_extra_per_node")
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id}.{self.group}: {self.role} on {self.node}"


class ConnectorGaps(models.Model):
    """What an element's connector has lost on one node, as one counter of that node says. It outlives the
    element's stay on that node. A node that has lost its counter's file begins another one."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="connector_gaps")
    element = models.CharField(max_length=60)
    node = models.CharField(max_length=40)
    counter = models.CharField(max_length=40)
    times = models.BigIntegerField()
    rows = models.BigIntegerField()
    at = models.DateTimeField(default=timezone.now)  # when control heard of the newest one

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["deployment", "element", "node", "counter"], name="one_row_per_counter_of_gaps"
            )
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id}.{self.element} on {self.node}: {self.times} gaps"


class ConnectorTrouble(models.Model):
    """What people were told last of an element's connector that has failed, on whichever node. The row goes
    when the connector has worked for some minutes."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="connector_troubles")
    element = models.CharField(max_length=60)
    why = models.TextField()  # a sentence
    since = models.DateTimeField()  # when they were told that it fails
    over = models.BooleanField(default=False)  # they were told that it works again
    times = models.PositiveIntegerField(default=1)  # how often they were told that it fails

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["deployment", "element"], name="one_trouble_per_connector")
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id}.{self.element}: {self.why}"


class Replica(models.Model):
    """One copy of a group as its node last reported it."""

    deployment = models.ForeignKey(Deployment, on_delete=models.CASCADE, related_name="replicas")
    group = models.CharField(max_length=60)
    node = models.ForeignKey("nodes.Node", on_delete=models.CASCADE, related_name="replicas")
    generation = models.PositiveIntegerField(default=1)
    status = models.JSONField(default=dict)  # ReplicaStatus
    rates = models.JSONField(default=dict)  # {"rows_in_per_s", "rows_out_per_s"}, from two reports' totals
    role = models.CharField(max_length=16)
    epoch = models.BigIntegerField(default=0)
    seq = models.BigIntegerField(default=0)
    at = models.DateTimeField()  # of the report

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["deployment", "group", "node"], name="one_replica_per_node")
        ]

    def __str__(self) -> str:
        return f"{self.deployment_id}.{self.group} on {self.node}: {self.role} at {self.epoch}/{self.seq}"
