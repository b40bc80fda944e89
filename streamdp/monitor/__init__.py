"""Metrics and health of a running service.

A metric is one line of a table; panels, rules and documentation follow from it.
"""
