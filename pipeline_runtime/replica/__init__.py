"""One running copy of a group on a node: its gate, its query, its sink, its role."""
