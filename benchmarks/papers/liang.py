"""Liang, Jordan and Taskar 2007, A permutation-augmented sampler for DP mixture models."""

from benchmarks.papers.figures import Experiment

EXPERIMENTS: tuple[Experiment, ...] = ()
