"""The control side: drives deployments and handovers, ingests reports, detects silent nodes."""
