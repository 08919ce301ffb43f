"""The control side: drives deployments and handovers, takes in reports, detects silent nodes.

process.py      the process and its threads
work.py         starts a thread for each operation and handover that has no outcome yet
operations/     deploy, upgrade, undeploy
handovers/      migrations and restorations, and what orders them: drains, silent nodes
policies.py     what policies order or advise
reports/        what the nodes report, and their silence
desired.py      what each node is to run, sent until the node knows it
checkpoints/    the central store, the plan of backups, the trimming of topics
"""
