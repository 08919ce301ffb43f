"""Names the purpose for which the URLs of channels are sealed."""

PURPOSE = "alarm channel"
