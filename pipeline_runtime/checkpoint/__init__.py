"""Checkpoints: a group's replica directory at a Seq, kept as content-addressed chunks.

    snapshot  hard links of the newest committed batch's files; costs the owner nothing
    store     chunks of a snapshot into a StateDatabase; only what is new is written
    service   a StateDatabase over HTTP; client, replicator: the other end of it
    materialize   verified files of a checkpoint in a fresh directory

See docs/decisions/0003-content-addressed-checkpoints.md.
"""
