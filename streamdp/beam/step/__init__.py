"""The way of one record through a beam."""
