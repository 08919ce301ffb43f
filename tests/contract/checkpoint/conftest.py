from tests.unit.checkpoint.replicas import central, checkpoint, database, replica, work

__all__ = ["central", "checkpoint", "database", "replica", "work"]
