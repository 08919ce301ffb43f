"""Runs one batch of a group: reads its rows, runs its elements on them, and hands over what they make.

Nothing here imports pyspark. `pipeline_runtime.spark` hosts it in tasks of a Structured Streaming query.
"""
