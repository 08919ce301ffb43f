"""Errors that are shown at an element."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import KnownError

_COMMITTED = "Everything up to the last committed batch is kept. The batch that failed left nothing behind."

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
        "schema-registry",
        "A schema registry does not answer, or lacks a schema",
        "The element reads or writes Avro with a schema registry. The registry did not answer or refused the"
        " login. Or it has no schema of the number with which a record begins. Or it did not take the schema"
        " of the rows, which has to fit the schemas that it has of the same subject. The message says which,"
        " and names the topic.",
        "Everything up to the last committed batch is kept. The batch that failed left nothing behind. Its"
        " records wait in their topic, and none of them is a dead letter because of this.",
        "If the registry does not answer, look at it. If it refuses the login, an admin enters the login"
        " again under Connections. If it has no such schema, let the program that writes the records"
        " register it there, or choose the right registry at the element. The element tries again by"
        " itself.",
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
