"""From a document to what nodes run: validation, schemas, groups and topics, what an upgrade means."""
