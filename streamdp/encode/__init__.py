"""From records to arrays, in event-time order."""
