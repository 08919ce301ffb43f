"""The processes beside the web: one agent per node, and the control side."""
