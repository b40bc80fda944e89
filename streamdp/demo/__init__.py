"""A generated stream of news with a known truth."""
