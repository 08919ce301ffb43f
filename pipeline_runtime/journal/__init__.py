"""A group's journal: the only source of truth on what has been processed, and by whom."""
