"""Checkpoints: a group's replica directory at a Seq, kept as content-addressed chunks.

    snapshot     makes hard links to the files of the newest committed batch; the owner does not wait for it
    store        puts the chunks of a snapshot into a StateDatabase; it writes only new chunks
    service      offers a StateDatabase over HTTP; client and replicator talk to it
    materialize  writes the verified files of a checkpoint into a fresh directory

See docs/decisions/0003-content-addressed-checkpoints.md.
"""
