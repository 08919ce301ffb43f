"""Takes the nodes' reports into the database and the histories, and notices silent nodes."""
