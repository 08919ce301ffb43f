"""Runs one copy of a group on a node (a replica): its gate, its query, its sink, its role."""
