"""Imports a user's file: finds out how to read it, asks about ambiguous parts, and makes a typed table,
once."""
