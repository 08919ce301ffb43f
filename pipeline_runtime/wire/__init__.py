"""What web, control and nodes call things when they talk over Redis: names of tasks, queues and keys."""
