"""Names of tasks, queues and keys that web, control and nodes use to talk over Redis."""
