"""Pipeline documents, schemas, and what a node is told to run. Imports nothing else of the engine."""
