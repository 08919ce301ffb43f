"""Turns a document into what nodes run: validation, schemas, groups and topics, and what an upgrade
changes."""
