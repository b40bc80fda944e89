"""What a running service tells of itself."""
