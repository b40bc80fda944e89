"""Partition priors: what is believed of a clustering before any record is read."""
