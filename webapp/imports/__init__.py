"""Takes a file as it comes: says how it is read, asks what is ambiguous, and imports it once."""
