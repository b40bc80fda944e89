"""Sources and sinks that are topics of Kafka.

Partitions are merged in an order that can be repeated. A sink writes a batch as one transaction, with the
positions that it covers.
"""
