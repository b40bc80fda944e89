"""What a beam is made of: arrays of state, and of scratch space."""
