"""How well labels agree with a known truth.

The measures of the field, by counts in a table of labels.
"""
