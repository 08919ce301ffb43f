"""Which node runs which group: pure functions."""
