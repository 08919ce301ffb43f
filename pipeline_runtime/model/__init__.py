"""Pipeline documents, schemas, and the orders to a node. Imports nothing else of the engine."""
