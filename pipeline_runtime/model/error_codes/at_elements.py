"""Errors that are shown at an element."""

from __future__ import annotations

from pipeline_runtime.model.error_codes.known_error import KnownError

_COMMITTED = (
    "Everything up to the last committed batch is kept. The batch that failed has left nothing behind."
)

AT_ELEMENTS = (
    KnownError(
        "operator-failed",
        "An operator raised an error",
        "The element's code failed on a batch of rows. Either the element's parameters do not suit the"
        " rows, or the code has a mistake. The message comes from the code, and the traceback shows the"
        " line.",
        _COMMITTED,
        "Read the message and the traceback. Correct the element's parameters or its data, then deploy"
        " again.",
    ),
    KnownError(
        "batch-too-long",
        "A batch does not end",
        "A batch has run for longer than `FOGLINE_BATCH_S` allows. Time in which Kafka did not answer"
        " does not count. The usual cause is a model or an operator that never ends. The message says"
        " which rows the batch was given.",
        _COMMITTED,
        "Look at these rows, and at the element's model or code. Then deploy a changed version, or skip"
        " the rows. If the element's batches have to take so long, raise `FOGLINE_BATCH_S` on the node.",
    ),
    KnownError(
        "not-deterministic",
        "A batch came out differently when it was processed again",
        "A standby or a restored element processed the same rows as the owner before it, and got another"
        " result. The cause is an operator that uses the clock, chance, the network or a file that"
        " changes.",
        "The node that noticed the difference has committed nothing. The owner is not affected.",
        "Correct the operator: its result may depend only on its rows, its state and the batch's time."
        " Then deploy again.",
    ),
    KnownError(
        "state-damaged",
        "The local state cannot be used",
        "The files that this node keeps for the element are damaged or incomplete, or do not fit the"
        " element's journal. A failing disk is the usual cause.",
        "Everything up to the last committed batch is kept, in the journal and in the checkpoints on"
        " other nodes.",
        "Nothing at first: the node takes the newest checkpoint instead. If the error comes again within"
        " an hour, check the disk, and restore the element on another node.",
    ),
    KnownError(
        "journal-trimmed",
        "The journal no longer reaches back to the local state",
        "The node was away for a long time. Meanwhile, Fogline trimmed from the journal the batches that"
        " the node needs next.",
        "Everything up to the last committed batch is kept, in the journal and in newer checkpoints.",
        "Nothing: the node takes a newer checkpoint by itself.",
    ),
    KnownError(
        "journal-damaged",
        "The journal contradicts itself",
        "A record of the element's journal cannot be read, or contradicts the records before it. The"
        " message names the record. Another program may have written to the topic, or Fogline has a"
        " mistake.",
        "This node has committed nothing after that record. The state and the checkpoints from before are"
        " kept.",
        "Make sure that no other program writes to topics whose names begin with `fl.`. Keep the topic"
        " and the nodes' logs, and report the error. To go on without the state, undeploy the pipeline"
        " and deploy it again.",
    ),
    KnownError(
        "rewind-undone",
        "The element cannot go back to that checkpoint",
        "You asked the element to go back to a checkpoint. Another restoration has undone that"
        " checkpoint, or the element's present parameters or inputs do not fit it.",
        "Everything up to the last committed batch is kept.",
        "Choose another checkpoint from the list, or restore the newest one.",
    ),
    KnownError(
        "rows-gone",
        "Rows were deleted before they were read",
        "The topic no longer holds the rows that the element has to read next. Kafka deleted them because"
        " the topic keeps its rows for a shorter time than the element lags behind, or somebody deleted"
        " them.",
        "Everything up to the last committed batch is kept. The element has processed no later row in"
        " place of the missing ones.",
        "Choose to continue after the gap. The choice says how many records it leaves out. To prevent such"
        " gaps, let the topic keep its records for longer (its retention). Or set the element's \"Records"
        ' deleted before they were read" to "Continue after them": the element then goes on by itself, and'
        " reports an event.",
    ),
    KnownError(
        "state-outdated",
        "A copy's state is older than the rows that are left",
        "The copy has to process the rows that the owner has committed since the copy's checkpoint. The"
        " topic no longer holds these rows: it keeps rows for too short a time, or somebody deleted the"
        " rows or the topic, or created the topic again.",
        "Everything up to the last committed batch is kept. The copy has written nothing, and has"
        " processed no other rows in place of the missing ones.",
        "Nothing at first: the node takes the newest checkpoint by itself, 5 times. If this checkpoint is"
        " too old as well, restore the element on the node that ran it last, as soon as that node is"
        " back: the newest state is on its disk. If that node is gone for good, undeploy the pipeline and"
        " deploy it again. The element then begins without a state.",
    ),
    KnownError(
        "topic-recreated",
        "The topic is another one by now",
        "Somebody deleted the topic that the element reads, and created one with the same name. Or the"
        " topic has lost records that the element had already read. So the element's position does not"
        " fit the topic any more.",
        "Everything up to the last committed batch is kept. The element has processed no record of the"
        " new topic.",
        "Choose to go on from the new beginning. The element then reads the new topic from its first"
        " record, and keeps its state.",
    ),
    KnownError(
        "topic-missing",
        "The topic does not exist",
        "Kafka has no topic of that name. Somebody deleted it, or nobody has created it yet.",
        "Everything up to the last committed batch is kept. The element waits for the topic.",
        "Create the topic, or correct its name in the element's parameters and deploy again.",
    ),
    KnownError(
        "rows-unreadable",
        "Records of a topic cannot be decoded",
        "The topic holds the records, but Fogline cannot read them. They are damaged, or compressed in a"
        " way that Fogline does not know.",
        _COMMITTED,
        "Find out which program wrote these records. When the topic holds readable records again, pause"
        " the element and resume it.",
    ),
    KnownError(
        "schema-registry",
        "A schema registry does not answer, or lacks a schema",
        "The element reads or writes Avro with a schema registry. The registry did not answer or refused the"
        " login. Or it has no schema of the number with which a record begins. Or it did not take the schema"
        " of the rows, which has to fit the schemas that it has of the same subject. Or it says another"
        " schema of a number than before. The message says which, and names the topic.",
        "Everything up to the last committed batch is kept. All records behind that wait in their topics, and"
        " none of them is a dead letter because of this.",
        "If the registry does not answer, look at it, or move the element to a node that reaches it. If it"
        " refuses the login, an admin enters the login again under Connections. If it has no such schema, let"
        " the program that writes the records register it there, or choose the right registry at the element."
        " If nobody will register it, choose to skip the records. If the registry says another schema than"
        " before, let its administrator bring the earlier one back, or choose to read by the new one. The"
        " element goes on by itself when the registry has answered.",
    ),
    KnownError(
        "topic-partitions-differ",
        "A topic has another number of partitions than the element reads",
        "Kafka divides a topic into partitions. Somebody added partitions to this topic, or the element's"
        " parameter Partitions has another number.",
        _COMMITTED,
        "Choose to go on with the new partitions. Or set the parameter Partitions to the number that the"
        " message names, or leave it empty to read all partitions. Then deploy again.",
    ),
    KnownError(
        "keys-in-several-partitions",
        "Rows of one key are in several partitions",
        "Kafka divides a topic into partitions. The element processes each partition by itself, so all"
        " rows of one key must be in one partition. The program that writes this topic puts rows of one"
        " key into several partitions.",
        _COMMITTED,
        "Let that program choose the partition by the key, or use a topic with one partition.",
    ),
    KnownError(
        "records-refused",
        "Kafka does not take a record",
        "Kafka refuses a record that the element wrote, and would refuse it again. The record is too"
        " large for the topic, or breaks another rule of the topic, or Fogline's user in Kafka may not"
        " write there. The message has Kafka's reason.",
        "Nothing of the batch was committed. Everything before it is kept.",
        "Change the topic's limit or the user's rights, or let the element write smaller records. Then"
        " deploy again.",
    ),
    KnownError(
        "output-file-changed",
        "Another program changed the output file",
        "The element's CSV file is shorter than what the element has written to it.",
        "The element has written nothing to the changed file. What it committed before is in its"
        " checkpoints.",
        "Keep other programs away from the file, and restore the element from a checkpoint.",
    ),
    KnownError(
        "node-starved",
        "The node had no time to start a process",
        "Spark waited 10 s for a Python process of the element. A start takes so long only if the machine"
        " has no CPU or no memory to spare.",
        _COMMITTED,
        "Nothing at first: the node starts the element again by itself. If the error comes again, move"
        " elements to another node.",
    ),
    KnownError(
        "nodes-fell-silent",
        "The element is held, because two nodes fell silent with it",
        "A node fell silent, and Fogline restored the element on another node. That node fell silent as"
        " well, before the element had committed a batch there. So the element itself may end its nodes,"
        " for example by a row that takes too much memory. Fogline holds the element: no node starts it"
        " any more, so it can end no further node.",
        "The committed batches and the state are kept. Fogline restores the other elements.",
        "Read the nodes' logs, for example to see whether memory was short. Then restore the element, or"
        " deploy a changed version: either starts it again. If it is offered, you can also skip the rows"
        " that its batch was reading.",
    ),
    KnownError(
        "java-ended-twice",
        "The element is held, because it ended the node's Java twice",
        "Spark's Java process ended while this element started or ran, twice within an hour. Lack of"
        " memory is the usual cause. Fogline holds the element: no node starts it any more, so the other"
        " elements can run.",
        "The committed batches and the state are kept. The other elements go on.",
        "Read the nodes' logs, for example to see whether memory was short. Then deploy a changed"
        " version, restore the element on another node, or pause and resume it: each of these starts it"
        " again. If it is offered, you can also skip the rows that its batch was reading.",
    ),
    KnownError(
        "owner-replaced",
        "Another node owns the element now",
        "This node was cut off or silent, and the element was restored on another node. Kafka refused"
        " what this node still tried to write.",
        "Nothing was written twice. The new owner processes the rows whose results this node had not"
        " committed.",
        "Nothing. The element starts here again only when somebody moves it here.",
    ),
    KnownError(
        "ended-unasked",
        "The element ended by itself, without an order",
        "The element stopped on its node, without an order and without an error of its own.",
        "What was committed stays committed. The local state is kept.",
        "Nothing at first: the node starts the element again from its local state. If the error comes"
        " again, read the node's log.",
    ),
    KnownError(
        "order-failed",
        "The node could not carry out an order",
        "The node could not start the element, stop it or take its last checkpoint. The message says why.",
        "What was committed stays committed. No state was lost.",
        "Nothing at first: the node tries again by itself. If the error stays, read the node's log.",
    ),
    KnownError(
        "checkpoint-not-fetched",
        "The checkpoint could not be fetched",
        "The node needs a checkpoint of the element from another node or from the central checkpoint"
        " service. That node or service does not answer, or refuses.",
        "The checkpoint is kept where it is. No state was lost.",
        "The node tries again by itself. Check whether the other machine runs, and whether this node can"
        " reach its port.",
    ),
    KnownError(
        "definition-refused",
        "The node cannot read the element's definition",
        "Control sent a definition of the element that this node cannot read. The two may have different"
        " versions of Fogline, or of an operator's package.",
        "The element's state and checkpoints on this node are kept. If the element ran here, it goes on"
        " as before.",
        "Correct the element's parameters, and deploy again. If the parameters are right, install the"
        " same version of Fogline on the node as control has.",
    ),
)
