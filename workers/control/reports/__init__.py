"""What the nodes report: taken into the database and the histories, and silence noticed."""
