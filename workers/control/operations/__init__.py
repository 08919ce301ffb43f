"""Deployments, upgrades and undeployments: their next steps, and the effects of these."""
