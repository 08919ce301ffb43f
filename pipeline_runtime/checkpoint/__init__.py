"""Checkpoints: a group's replica directory at a Seq, kept as content-addressed chunks.

    snapshot     hard links of the newest committed batch's files; costs the owner nothing
    store        puts the chunks of a snapshot into a StateDatabase; only new chunks are written
    service      a StateDatabase over HTTP; client and replicator talk to it
    materialize  writes the verified files of a checkpoint into a fresh directory

See docs/decisions/0003-content-addressed-checkpoints.md.
"""
