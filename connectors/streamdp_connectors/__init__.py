"""Sources and sinks that bring records to streamdp and carry its answers away."""
