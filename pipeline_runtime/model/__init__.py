"""Pipeline documents, schemas, validation, and what a node is told to run. Imports no engine."""
