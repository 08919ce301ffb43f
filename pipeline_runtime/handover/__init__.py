"""Who owns a group: `protocol` decides, `ownership` carries it out.

`phases` has the table of a handover's phases.
"""
