"""For what the URLs of channels are sealed."""

PURPOSE = "alarm channel"
