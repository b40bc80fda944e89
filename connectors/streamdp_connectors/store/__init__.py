"""A store: one SQLite file that holds records, stories and events, written as a sink."""
