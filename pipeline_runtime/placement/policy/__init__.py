"""When groups move by themselves, for advice or by control: pure.

`evaluate` asks a module for each kind of policy: `threshold` (CPU, battery), `maintenance`, `latency`,
`balance` (spread, pack), `sites`. What they share is in `look`, what a person says in `rules`, what was
measured in `facts`. Control acts by the verdicts, a dry run replays them (`replay`).
"""
