"""How the values of records that others read and write are written: Avro, CSV and text. JSON is the batch's
own."""
