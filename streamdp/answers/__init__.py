"""From what the beam decided to what the outside is told."""
