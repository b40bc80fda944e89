"""Stories out of whatever a run left, and what is made of them."""
