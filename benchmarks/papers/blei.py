"""Blei and Frazier 2011, Distance dependent Chinese restaurant processes."""

from benchmarks.papers.figures import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
