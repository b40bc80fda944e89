"""How well labels agree with a known truth."""
