"""Deployments, upgrades and undeployments: what is done next, and its effects."""
