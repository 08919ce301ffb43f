"""The errors that a user may look up. `make reference` makes docs/errors/ from this table, a page for each.

A code is shown at the element that failed, or in the answer of the REST API.
It is made of words, so that it says something by itself and is found by any search.
"""

from __future__ import annotations

from typing import NamedTuple


class KnownError(NamedTuple):
    code: str
    title: str
    happened: str
    safe: str
    next: str


_COMMITTED = "Everything up to the last committed batch is kept. The batch that failed left nothing behind."
_UNCHANGED = "Nothing was changed. Everything that runs goes on."

AT_ELEMENTS = (
    KnownError(
        "operator-failed",
        "An operator raised an error",
        "The element's code failed on a batch: its parameters do not suit the rows, or it has a bug. The"
        " message is the operator's own, and the traceback shows the line.",
        _COMMITTED,
        "Look at the traceback, correct the element's parameters or its data, and deploy again.",
    ),
    KnownError(
        "batch-too-long",
        "A batch does not end",
        "A batch has run for longer than `FOGLINE_BATCH_S` allows, not counting the time in which"
        " Kafka did not answer. The usual cause is a model or an operator that never ends. The"
        " message says which rows the batch was given.",
        _COMMITTED,
        "Look at the element's model or code and at those rows, then deploy a changed version, or"
        " skip the rows. If the element's batches have to take that long, raise `FOGLINE_BATCH_S`"
        " on the node.",
    ),
    KnownError(
        "not-deterministic",
        "A batch came out differently when it was processed again",
        "A standby or a restored element processes the same rows as the owner before it, and must"
        " get the same result. It got another result. An operator of the group uses the clock,"
        " chance, the network or a file that changes.",
        "The replica that noticed it committed nothing. The owner is not affected.",
        "Correct the operator: its output may depend on its rows, its state and the batch's time alone."
        " Then deploy again.",
    ),
    KnownError(
        "state-damaged",
        "The local state cannot be used",
        "The files that a node keeps for the element are damaged, incomplete, or do not fit its journal. A"
        " failing disk is the usual cause.",
        "Everything up to the last committed batch is kept: in the journal, and in the checkpoints on other"
        " nodes.",
        "Nothing at first: the node takes the newest checkpoint by itself. If it happens again within an"
        " hour, look at the disk and restore the element on another node.",
    ),
    KnownError(
        "journal-trimmed",
        "The journal no longer reaches back to the local state",
        "The node was away for so long that the batches after its state were trimmed from the journal.",
        "Everything up to the last committed batch is kept, in the journal and in newer checkpoints.",
        "Nothing: the node takes a newer checkpoint by itself.",
    ),
    KnownError(
        "journal-damaged",
        "The journal contradicts itself",
        "A record of the element's journal cannot be read, or does not follow from the records before it. The"
        " message names the record. Another program may have written to the topic, or Fogline has a bug.",
        "This node committed nothing behind that record. The state and the checkpoints from before are kept.",
        "See that no other program writes to topics whose names begin with `fl.`. Keep the topic and the"
        " nodes' logs, and report it. To go on without the state, undeploy the pipeline and deploy it again.",
    ),
    KnownError(
        "rewind-undone",
        "The element cannot go back to that checkpoint",
        "You asked to go back to a point that another restoration has undone, or from which the element"
        " cannot continue with its present parameters or inputs.",
        _COMMITTED,
        "Choose another checkpoint of the list, or restore the newest one.",
    ),
    KnownError(
        "rows-gone",
        "Rows were deleted before they were read",
        "The topic no longer holds the rows that the element has to read next. The topic's"
        " retention is shorter than the time by which the element lags behind, or somebody deleted"
        " the rows.",
        "Everything up to the last committed batch is kept. No later row is processed in place of the"
        " missing ones.",
        "Choose to go on behind the gap. The choice says how many records it leaves out. To"
        " prevent such gaps, give the topic a longer retention. Or set the element's \"Records"
        ' deleted before they were read" to "Go on behind them": the element then goes on by'
        " itself, with an event.",
    ),
    KnownError(
        "state-outdated",
        "A copy's state is older than the rows that are left",
        "The copy has to process what the owner has committed since the copy's checkpoint. The topic no"
        " longer holds these rows: its retention is short, or somebody deleted rows or the topic, or"
        " created the topic again.",
        "Everything up to the last committed batch is kept. The copy has emitted nothing, and has processed"
        " no other rows in place of the missing ones.",
        "Nothing at first: the node takes the newest checkpoint by itself, 5 times. If this"
        " checkpoint is too old as well, restore the element on the node that ran it last, as soon"
        " as that node is back: the newest state is on its disk. If that node is gone for good,"
        " undeploy the pipeline and deploy it again: the element then begins without a state.",
    ),
    KnownError(
        "topic-recreated",
        "The topic is another one by now",
        "Somebody deleted the topic that the element reads, and created one with the same name."
        " Or the topic has lost records that the element had read. The position up to which the"
        " element has read does not fit the new topic.",
        "Everything up to the last committed batch is kept. The element has processed no record"
        " of the new topic.",
        "Choose to go on from the new beginning. The element then reads the new topic from its first record,"
        " and keeps its state.",
    ),
    KnownError(
        "topic-missing",
        "The topic does not exist",
        "Kafka knows no topic of that name. It was deleted, or never created.",
        "Everything up to the last committed batch is kept. The element waits for the topic.",
        "Create the topic, or correct its name in the element's parameters and deploy again.",
    ),
    KnownError(
        "rows-unreadable",
        "Records of a topic cannot be decoded",
        "The records are there, but Kafka's client cannot read them: they are damaged, or"
        " compressed in a way that Fogline does not know.",
        _COMMITTED,
        "Find out which producer wrote these records. When the topic holds readable records"
        " again, pause and resume the element.",
    ),
    KnownError(
        "topic-partitions-differ",
        "A topic has another number of partitions than the element reads",
        "Somebody added partitions to the topic, or its element was told another number.",
        _COMMITTED,
        "Choose to go on with the new partitions. Or set the element's Partitions to the number"
        " that the message names, or leave it empty to read all of them, and deploy again.",
    ),
    KnownError(
        "keys-in-several-partitions",
        "Rows of one key are in several partitions",
        "Each partition is processed by itself, so all rows of a key must be in the same one. The producer"
        " of this topic does not send them by key.",
        _COMMITTED,
        "Let the producer use the key for its partition, or use a topic with one partition.",
    ),
    KnownError(
        "records-refused",
        "Kafka does not take a record",
        "The broker refuses for good a record that the element wrote: the record is too large for"
        " the topic, or its time is not allowed there.",
        "Nothing of the batch was committed. Everything before it is kept.",
        "Raise the topic's limit, or let the element write smaller records. Then deploy again.",
    ),
    KnownError(
        "output-file-changed",
        "Another program changed the output file",
        "The CSV file is shorter than what was committed to it.",
        "Nothing was written to the changed file. What was committed before is in the element's checkpoints.",
        "Keep other programs away from the file, and restore the element from a checkpoint.",
    ),
    KnownError(
        "node-starved",
        "The node had no time to start a process",
        "Spark waited 10 s for a Python process of the element. A start takes that long only on a"
        " machine without any CPU or memory to spare.",
        _COMMITTED,
        "The node starts the element again by itself. If this happens again, move elements to another node.",
    ),
    KnownError(
        "nodes-fell-silent",
        "The element is held, because two nodes fell silent with it",
        "A node fell silent, and the element was restored on another node. That node fell silent"
        " as well, before the element had committed a batch there. So the element itself may end"
        " its nodes, for example by a row that takes too much memory. No node starts it any more,"
        " so that it ends no further node.",
        "Committed batches are in the journal and the state is kept. The other elements are restored.",
        "See the nodes' logs, for instance whether memory was short. Restore the element: then it is started"
        " again. Or skip the rows that its batch was reading, where that is offered. Or deploy a changed"
        " version.",
    ),
    KnownError(
        "java-ended-twice",
        "The element is held, because it ended the node's Java twice",
        "Spark's Java process ended while this element started or ran, twice within an hour. The element is"
        " not started any more, so that the others can run. Lack of memory is the usual cause.",
        "Committed batches are in the journal and the state is kept. The other elements go on.",
        "See the nodes' logs, for instance whether memory was short. Deploy a changed version,"
        " restore the element on another node, or pause and resume it. Any of these starts it"
        " again. Or skip the rows that its batch was reading, where that is offered.",
    ),
    KnownError(
        "owner-replaced",
        "Another node owns the element now",
        "This node was cut off or silent, and the element was restored elsewhere. What this node still"
        " tried to write was refused.",
        "Nothing was written twice. The new owner processes the rows whose results this node had"
        " not committed.",
        "Nothing. The element starts here again only when somebody moves it here.",
    ),
    KnownError(
        "ended-unasked",
        "The element ended without being told to",
        "Its process on the node is gone, without an error of its own.",
        "What was committed stays committed. The local state is kept.",
        "Nothing: it is started again from its local state. If it happens again, see the node's log.",
    ),
    KnownError(
        "order-failed",
        "The node could not do what it was told",
        "The node could not start or stop the element, or take its last checkpoint. The message says why.",
        "What was committed stays committed. No state was lost.",
        "The node tries again by itself. See its log if that does not help.",
    ),
    KnownError(
        "checkpoint-not-fetched",
        "The checkpoint could not be fetched",
        "The node that has the checkpoint, or the central checkpoint service, does not answer or refuses.",
        "The checkpoint is kept where it is. No state was lost.",
        "The node tries again by itself. See whether the other machine runs and its port can be reached.",
    ),
    KnownError(
        "definition-refused",
        "The node cannot read the element's definition",
        "The control process sent a definition of the element that this node cannot read. The two"
        " may have different versions of Fogline, or of an operator's package.",
        "The element's state and checkpoints on this node are kept. If the element ran here, it"
        " goes on as before.",
        "Correct the element's parameters and deploy again. If they are right, install the same version of"
        " Fogline on the node as on the control side.",
    ),
)
"""Errors that are shown at an element."""

IN_ANSWERS = (
    KnownError(
        "unreadable",
        "The request cannot be read",
        "The body is not the JSON, form or file that the route expects.",
        _UNCHANGED,
        "Correct the body. `/api/v1/openapi.json` describes what each route takes.",
    ),
    KnownError(
        "unauthenticated",
        "You are not signed in",
        "The request has no session and no valid API token. A new password revokes all tokens of its"
        " account.",
        _UNCHANGED,
        "Sign in, or send `Authorization: Bearer <token>` with a token from *Your account*.",
    ),
    KnownError(
        "forbidden",
        "Your role may not do this",
        "You are signed in, but the action needs a higher role.",
        _UNCHANGED,
        "Ask an admin for that role, or ask somebody who has it to do this.",
    ),
    KnownError(
        "csrf",
        "The page is too old to change something",
        "A request with the session of a browser needs the token that its page was given. The page was opened"
        " before you last signed in, or another site has sent the request.",
        _UNCHANGED,
        "Reload the page and try again. In a program, send an API token instead of a session.",
    ),
    KnownError(
        "not-found",
        "There is nothing of that name",
        "The pipeline, element, node or other thing that the request names does not exist, or no"
        " longer exists.",
        _UNCHANGED,
        "See whether the name is right. The overview lists what there is.",
    ),
    KnownError(
        "method-not-allowed",
        "This address does not accept that method",
        "The address exists, but not with this method, such as POST where only GET is possible.",
        _UNCHANGED,
        "The header Allow of the answer lists the methods that the address accepts.",
    ),
    KnownError(
        "conflict",
        "This is not possible now",
        "The request is valid, but the thing that it names is in a state that does not allow it."
        " For example it runs, does not run or moves, or its name is taken.",
        _UNCHANGED,
        "`next` in the answer says what to do first.",
    ),
    KnownError(
        "draft-overtaken",
        "Somebody else saved the draft meanwhile",
        "You saved or deployed a draft that you had opened before somebody else saved it.",
        "Both versions are kept: the saved one is unchanged, and yours is in the answer or in your browser.",
        "Look at both, merge them, and save or deploy again. The editor offers that.",
    ),
    KnownError(
        "wall-overtaken",
        "Somebody else saved the wall meanwhile",
        "You saved a wall that you had opened before somebody else saved it.",
        "The saved wall is unchanged, and is in the answer. Yours is in your browser.",
        "Load the saved wall, make your change again, and save.",
    ),
    KnownError(
        "upgrade-refused",
        "This version cannot take over from the one that runs",
        "The version has a change that cannot be made while the pipeline runs. `faults` names"
        " each element and the reason.",
        _UNCHANGED,
        "Change back what is named, or undeploy the pipeline first. docs/explanation/operations.md says"
        " what an upgrade may change.",
    ),
    KnownError(
        "version-differs",
        "The machine has another version of Fogline",
        "All nodes must have the version of the control side.",
        "The machine has not joined. Its token can still be used.",
        "Install on this machine the version that the message names, and start the node again.",
    ),
    KnownError(
        "length-required",
        "The request does not say how long it is",
        "An upload needs the header `Content-Length`.",
        "Nothing was stored.",
        "Send the length. With curl, `--data-binary @file` does it.",
    ),
    KnownError(
        "too-large",
        "The file or request is too large",
        "It is larger than the limit that the message names.",
        "Nothing was stored.",
        "Split the file or the request. For data files, an admin can raise `FOGLINE_UPLOAD_BYTES_MAX`.",
    ),
    KnownError(
        "invalid",
        "The content has mistakes",
        "The request can be read, but values in it are missing or not allowed. `faults` names each place.",
        _UNCHANGED,
        "Correct what `faults` names, and send it again.",
    ),
    KnownError(
        "precondition-required",
        "The request does not say which draft it changes",
        "Saving a draft needs the header `If-Match` with the draft's revision, so that nobody's work is"
        " overwritten.",
        _UNCHANGED,
        "Read the draft, and send its `ETag` as `If-Match`.",
    ),
    KnownError(
        "too-soon",
        "The same was done a moment ago",
        "This request is allowed only once within some seconds. The header `Retry-After` says for"
        " how many seconds to wait.",
        _UNCHANGED,
        "Wait for that time, and send the request again.",
    ),
    KnownError(
        "backend-away",
        "Kafka, Redis, a checkpoint service or a node does not answer",
        "The dashboard needs this service for your request, and got no answer from it.",
        "Running pipelines are not affected by this request. An order that could not be sent was not"
        " carried out.",
        "See whether the service that the message names runs, then try again. `/readyz` says"
        " which services answer.",
    ),
    KnownError(
        "server-failed",
        "The dashboard itself failed",
        "The server met an error for which it has no message.",
        "Running pipelines are not affected: no pipeline needs the dashboard.",
        "The log `web.log` in `FOGLINE_DATA/logs` has the details. Please report it.",
    ),
)
"""Errors that are in an answer of the REST API, and in the dashboard's messages."""

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
        _UNCHANGED,
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

AT_START = (
    KnownError(
        "settings-refused",
        "A setting cannot be used",
        "An environment variable has a value that is not allowed, or names something that does not exist.",
        "Nothing was started, and no data was changed.",
        "The line names the variable. The reference of settings says what the variable may be."
        " Correct it, and start again.",
    ),
    KnownError(
        "already-running",
        "Fogline runs already on this data",
        "Another start uses the same data directory.",
        "Nothing was started. The Fogline that runs goes on.",
        "Use the Fogline that runs, or stop it first. To run a second one, set FOGLINE_DATA to"
        " another directory.",
    ),
    KnownError(
        "port-taken",
        "A port cannot be used",
        "Another program listens on a port that Fogline needs, two parts were given the same port, or this"
        " user may not open it.",
        "Nothing was started, and no data was changed.",
        "The line names the port, who has it and the variable that changes it. Stop that program, or choose"
        " another port.",
    ),
    KnownError(
        "disk-full",
        "There is too little room on the disk",
        "The disk of the data directory has less free space than a start needs.",
        "Nothing was started, and no data was changed.",
        "Free some space, or set FOGLINE_DATA to a directory on another disk.",
    ),
    KnownError(
        "java-missing",
        "There is no Java that fits",
        "Spark and Kafka need Java 17 or newer. There is no Java on the path, or it is older.",
        "Nothing was started, and no data was changed.",
        "Install Java 17 or newer, and start again.",
    ),
    KnownError(
        "kafka-away",
        "Kafka does not answer",
        "No broker answers at the addresses of FOGLINE_KAFKA, at a start or while streams were to be made.",
        "Pipelines that run go on as soon as Kafka answers. Nothing that was committed is lost.",
        "See whether the brokers run, whether the addresses are right, and whether the security settings fit."
        " Then try again.",
    ),
)

ERRORS = {error.code: error for error in (*AT_ELEMENTS, *IN_ANSWERS, *IN_ORDERS, *AT_START)}
