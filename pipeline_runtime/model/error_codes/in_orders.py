"""Errors of deployments, moves and restorations that failed."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import UNCHANGED, KnownError

_RUNS_ON = "The element runs where it ran before. Nothing is lost, and nothing was written twice."
_AS_BEFORE = (
    "After a failed move, the element runs where it ran before. After a failed restoration, everything up"
    " to the last committed batch is kept, and you can restore the element again. Nothing was written"
    " twice."
)
_UPGRADED_IN_PART = (
    "Elements that were upgraded before this error run on in the new version, and all others run as before."
)
_NOT_DEPLOYED = (
    "A new deployment is removed again, and nothing of it runs. In an upgrade, elements that were"
    " upgraded before this error run on in the new version, and all others run as before."
)

IN_ORDERS = (
    KnownError(
        "target-silent",
        "The node that an element was to go to does not answer",
        "The target node of a move or a restoration fell silent before it owned the element.",
        _AS_BEFORE,
        "Find out why the node is away: check whether it runs, and whether it reaches Kafka and Redis."
        " Then order the move or the restoration again, or choose another node.",
    ),
    KnownError(
        "origin-silent",
        "The node that an element was to leave does not answer",
        "The node that ran the element fell silent during a move, so it cannot hand the element over.",
        "Everything up to the last committed batch is kept. If the node still runs, so does the element.",
        "If the node stays silent, restore the element on another node.",
    ),
    KnownError(
        "origin-failed",
        "The element failed before it was handed over",
        "The element raised an error on the node that it was to leave.",
        "Everything up to the last committed batch is kept.",
        "Read the element's error first, and remove its cause. Then move the element again, or restore it.",
    ),
    KnownError(
        "standby-gone",
        "The hot standby is gone",
        "The element was to go on from a hot standby, but this standby no longer follows the element.",
        "Everything up to the last committed batch is kept. The checkpoints are kept as well.",
        "Restore the element from a checkpoint.",
    ),
    KnownError(
        "copy-failed",
        "The target could not make its copy",
        "The target node could not fetch the element's checkpoint, could not start from it, or failed"
        " later as a standby. The message has the node's own error.",
        _AS_BEFORE,
        "Read the message. Usual causes are a full disk, a lost connection, or a file that is missing on"
        " that node. Remove the cause, then order the move or the restoration again.",
    ),
    KnownError(
        "copy-stalled",
        "The copy did not get ready in time",
        "The target node made no progress for two minutes. Its line or its disk is too slow, or it has"
        " too much to do.",
        _AS_BEFORE,
        "Choose a node with more free capacity or a better line, or try again when the node has less to do.",
    ),
    KnownError(
        "stop-overdue",
        "The element did not stop in time",
        "A move by stop-and-copy waits until the running batch has ended. That batch took too long.",
        _RUNS_ON,
        "Look at the batch times of the element. Move it when its batches are shorter.",
    ),
    KnownError(
        "not-owned-yet",
        "The target was to own the element and does not yet",
        "The element was handed over, and the new owner has not begun: its node is silent, or the element"
        " fails there.",
        "Everything up to the last committed batch is kept. No other node writes for the element.",
        "Wait for the node if it may come back soon. Otherwise restore the element on another node.",
    ),
    KnownError(
        "ownership-refused",
        "A node was not allowed to own the element",
        "The element's journal says which node owns the element. Each time this node tried, the journal"
        " had already granted the element to another owner, or the pipeline had been undeployed.",
        "Exactly one owner writes. Nothing is lost, and nothing was written twice.",
        "Look where the element runs now. If it should run elsewhere, order the move again.",
    ),
    KnownError(
        "version-invalid",
        "The version cannot be deployed",
        "Control found mistakes in the version when it began to deploy it, such as a node or a file that"
        " no longer exists.",
        UNCHANGED,
        "The list of faults names each place. Correct these places in the draft, and deploy again.",
    ),
    KnownError(
        "no-node",
        "There is no node for some elements",
        "No node can take these elements: nodes are away, cordoned or full, or the elements must not"
        " share one node.",
        _NOT_DEPLOYED,
        "The message says what each element lacks. Start a node, uncordon one, or change where the"
        " elements may run. Then deploy again.",
    ),
    KnownError(
        "topics-refused",
        "Kafka refuses the pipeline's streams",
        "Kafka answered, but did not create a topic. Usual causes are a limit of Kafka, or missing rights"
        " of Fogline's user in Kafka.",
        _NOT_DEPLOYED,
        "The message has Kafka's reason. Change the limit or the rights, and deploy again.",
    ),
    KnownError(
        "start-failed",
        "An element fails when it starts",
        "The element, or its new version in an upgrade, raised an error on its node before it began to work.",
        _NOT_DEPLOYED,
        "Open the fault: it has the element's own error and the traceback. Correct the cause, and deploy"
        " again.",
    ),
    KnownError(
        "start-overdue",
        "An element did not start in time",
        "The element's node had too much to do, or fell silent, before the element ran.",
        _NOT_DEPLOYED,
        "Check whether the node answers, and how busy it is. Then deploy again, with fewer elements on"
        " that node.",
    ),
    KnownError(
        "waited-in-vain",
        "The moves that had to end first did not end",
        "An upgrade waits until the moves of its elements have ended. They did not end in time.",
        _UPGRADED_IN_PART,
        "Look at the handovers of the pipeline. When they have ended, deploy again.",
    ),
    KnownError(
        "positions-unknown",
        "It is not known from where to go on",
        "An upgrade that groups or connects elements in another way has to know how far each stream was"
        " read. Neither Kafka nor a journal gave this position.",
        _UPGRADED_IN_PART,
        "Check whether Kafka and the nodes of these elements answer, then deploy again.",
    ),
    KnownError(
        "end-not-confirmed",
        "An element may still run",
        "In an upgrade, an element had to end before others could go on from where it stopped. Its node"
        " did not confirm the end.",
        _UPGRADED_IN_PART,
        "Check whether the node answers, or restore the element on another node. Then deploy again.",
    ),
)
