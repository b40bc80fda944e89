"""Benchmarks of speed, memory and quality; README.md says what each measures."""
