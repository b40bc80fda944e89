"""Experiments, tables and figures of the papers, a module a paper."""
