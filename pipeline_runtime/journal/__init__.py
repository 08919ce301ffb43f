"""A group's journal: the only source of truth on what was processed, and by which owner."""
