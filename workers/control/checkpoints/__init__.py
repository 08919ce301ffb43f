"""The central store of checkpoints, the plan of backups, and the trimming of topics."""
