"""Looking back: second looks at records and clusters and moves that refinements found."""
