"""Errors of deployments, moves and restorations that failed."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import UNCHANGED, KnownError

_RUNS_ON = "The element runs where it ran before. Nothing is lost, and nothing was written twice."
_NOT_DEPLOYED = (
    "A new deployment is removed again, and nothing of it runs. In an upgrade, elements that were upgraded"
    " before this error run on in the new version, and all others run as before."
)

IN_ORDERS = (
    KnownError(
        "target-silent",
        "The node that an element was to go to does not answer",
        "The target of a move or a restoration fell silent before it owned the element.",
        _RUNS_ON,
        "See why the node is away: whether it runs, and whether it reaches Kafka and Redis. Then move the"
        " element again, or choose another node.",
    ),
    KnownError(
        "origin-silent",
        "The node that an element was to leave does not answer",
        "The origin of a live migration fell silent, so it cannot hand the element over.",
        "Everything up to the last committed batch is kept. If the node still runs, so does the element.",
        "If the node stays silent, restore the element on another node.",
    ),
    KnownError(
        "origin-failed",
        "The element failed before it was handed over",
        "The element raised an error on the node that it was to leave.",
        "Everything up to the last committed batch is kept.",
        "Look at the element's error first, and mend its cause. Then move it again, or restore it.",
    ),
    KnownError(
        "standby-gone",
        "The hot standby is gone",
        "The element was to go on from a standby that no longer follows.",
        "Everything up to the last committed batch is kept, and so are the checkpoints.",
        "Restore the element from a checkpoint.",
    ),
    KnownError(
        "copy-failed",
        "The target could not make its copy",
        "The node that an element was to go to could not fetch the checkpoint, or could not start from it."
        " The message has the node's own error.",
        _RUNS_ON,
        "Look at the message. Usual causes are a full disk, a lost connection or a file that is"
        " missing on that node. Mend the cause, then move the element again.",
    ),
    KnownError(
        "copy-stalled",
        "The copy did not get ready in time",
        "The node that an element was to go to reported no progress for two minutes. Its line or"
        " its disk is too slow, or it has too much to do.",
        _RUNS_ON,
        "Choose a node with more room or a better line, or move the element when the node has less to do.",
    ),
    KnownError(
        "stop-overdue",
        "The element did not stop in time",
        "A stop-and-copy waits for the running batch. That batch took too long.",
        _RUNS_ON,
        "Look at the batch times of the element. Move it when its batches are shorter.",
    ),
    KnownError(
        "not-owned-yet",
        "The target was to own the element and does not yet",
        "The element was handed over, and the new owner has not begun: its node is silent, or it failed.",
        "Everything up to the last committed batch is kept. Nobody else writes for the element.",
        "Wait for the node if it comes back soon. Otherwise restore the element on another node.",
    ),
    KnownError(
        "ownership-refused",
        "A node was not allowed to own the element",
        "Each time the node tried, the journal had granted the element to another owner at the same moment.",
        "Exactly one owner writes. Nothing is lost, and nothing was written twice.",
        "See where the element runs now. If that is not where it should run, order the move again.",
    ),
    KnownError(
        "version-invalid",
        "The version cannot be deployed",
        "When the version was to be deployed, mistakes were found in it, such as a node or a file"
        " that no longer exists.",
        UNCHANGED,
        "The list of faults names each place. Correct these places in the draft, and deploy again.",
    ),
    KnownError(
        "no-node",
        "There is no node for some elements",
        "No node can take these elements: nodes are away, cordoned or full, or the elements must"
        " not share one node.",
        _NOT_DEPLOYED,
        "The message says what each element lacks. Start a node, uncordon one, or change where the elements"
        " may run. Then deploy again.",
    ),
    KnownError(
        "topics-refused",
        "Kafka refuses the pipeline's streams",
        "Kafka answered, and did not create a topic. Usual causes are a limit or the rights of"
        " Fogline's user in Kafka.",
        _NOT_DEPLOYED,
        "The message is Kafka's own. Change the limit or the rights, and deploy again.",
    ),
    KnownError(
        "start-failed",
        "An element fails when it starts",
        "The element raised an error on its node before it processed anything.",
        _NOT_DEPLOYED,
        "Open the fault for the element's own error and its traceback. Correct it, and deploy again.",
    ),
    KnownError(
        "start-overdue",
        "An element did not start in time",
        "Its node had too much to do, or fell silent, before the element ran.",
        _NOT_DEPLOYED,
        "See whether the node answers and how busy it is. Deploy again, with fewer elements on that node.",
    ),
    KnownError(
        "waited-in-vain",
        "The moves that had to end first did not end",
        "An upgrade waits until the moves of its elements have ended. They did not end in time.",
        _NOT_DEPLOYED,
        "See the handovers of the pipeline. When they have ended, deploy again.",
    ),
    KnownError(
        "positions-unknown",
        "It is not known from where to go on",
        "An upgrade that groups or connects elements otherwise has to know how far each stream"
        " was read. Neither Kafka nor a journal said so.",
        _NOT_DEPLOYED,
        "See whether Kafka and the nodes of these elements answer, then deploy again.",
    ),
    KnownError(
        "end-not-confirmed",
        "An element may still run",
        "An element had to end before others could go on from where it stopped. Its node did not"
        " confirm the end.",
        _NOT_DEPLOYED,
        "See whether its node answers, or restore the element on another node. Then deploy again.",
    ),
)
