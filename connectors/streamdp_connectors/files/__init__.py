"""Sources and sinks that are files, folders, pipes and the standard streams."""
