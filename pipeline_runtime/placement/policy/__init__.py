"""Decides when groups move by themselves, as advice or by control. Pure.

`evaluate` asks a module for each kind of policy: `threshold` (CPU, battery), `maintenance`, `latency`,
`balance` (spread, pack), `sites` and others. Shared parts are in `look`, what a user sets in `rules`, what
was measured in `facts`. Control acts on the verdicts, and a dry run replays them (`replay`).
"""
