"""Decides who owns a group: `protocol` decides, and `ownership` carries the decision out.

`phases` has the table of a handover's phases.
"""
