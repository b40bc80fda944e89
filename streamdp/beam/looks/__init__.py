"""Looking back: second looks at records and clusters, moves that refinements found, adaptation."""
