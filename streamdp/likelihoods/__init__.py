"""Likelihood families: what the records of one cluster have in common."""
