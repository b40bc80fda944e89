"""Daume III 2007, Fast search for Dirichlet process mixture models."""

from benchmarks.papers.figures import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
