"""From the output of the beam to answers: assignments, events, summaries of clusters."""
