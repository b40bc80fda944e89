"""From bytes to records.

Events of a batch are read side by side: JSON by msgspec, tables by numpy, heads of log lines by one regular
expression for each form. What cannot be read is refused with a reason.
"""
