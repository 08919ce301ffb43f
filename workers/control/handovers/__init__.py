"""Handovers: what is done next, its effects, and who orders handovers without being asked."""
