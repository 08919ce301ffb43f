"""The formats of records in users' topics: Avro, CSV and text. The package batch reads and writes JSON."""
