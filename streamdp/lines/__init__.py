"""Lines of a log as templates with holes: one greedy pass that merges as it goes.

A line is folded and hashed; a known one is answered at once. Others are scored by what their tokens say
under each template; holes are closed or opened where that is likelier.
"""
