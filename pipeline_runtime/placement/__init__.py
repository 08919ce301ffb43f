"""Decides which node runs which group. Pure functions."""
