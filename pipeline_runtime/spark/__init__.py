"""The only owner of Spark sessions and queries."""
