"""Starts and watches everything that runs on this machine. See docs/architecture.md."""
