"""What people are told of a cluster: a title, keywords, times, trend and records."""
