"""What templates must put out, in plain Python that shares no code with the operators."""
