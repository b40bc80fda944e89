"""What survives the end of a process."""
