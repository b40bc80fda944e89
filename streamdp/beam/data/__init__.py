"""What a beam is made of: arrays of state, and of scratch space.

Each cluster of all hypotheses is stored once, in a slot; a table says which hypothesis holds which contested
slot; the trellis has the history of each.
"""
