"""From bytes to records."""
