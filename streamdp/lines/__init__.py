"""Lines of a log as templates with holes: one greedy pass that merges as it goes."""
