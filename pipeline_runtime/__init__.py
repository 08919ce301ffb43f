"""The engine: pipelines as Spark queries with exactly-once ownership. Imports neither Django nor Celery."""

__version__ = "0.1.0"
