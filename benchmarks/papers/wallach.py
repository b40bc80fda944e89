"""Wallach, Jensen, Dicker and Heller 2010, An alternative prior process."""

from benchmarks.papers.figures import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
