"""Connectors: light processes of a node that bring rows in from systems outside, and deliver rows to them."""
