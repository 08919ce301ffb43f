"""Oracles: they compute the output of templates in plain Python that shares no code with the operators."""
