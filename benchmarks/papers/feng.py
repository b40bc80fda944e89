"""Feng, Blei and Frazier 2015, search for the distance-dependent Chinese restaurant process."""

from benchmarks.papers.figures import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
