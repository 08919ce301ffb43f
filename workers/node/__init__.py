"""The node agent: runs what the control side wants of this machine, and reports. Needs no web code."""
