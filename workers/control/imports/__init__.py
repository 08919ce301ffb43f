"""Looks at uploaded files and imports them, each in a process of its own."""
