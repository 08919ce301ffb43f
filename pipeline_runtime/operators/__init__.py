"""The operator SDK (sdk.py) and the library, one file per operator."""
