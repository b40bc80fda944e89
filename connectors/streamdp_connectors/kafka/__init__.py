"""Sources and sinks that are topics of Kafka."""
