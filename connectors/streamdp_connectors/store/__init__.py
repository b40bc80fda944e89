"""A store: one SQLite file that holds records, stories and events, written as a sink.

Each batch is one transaction, with the position that it covers: the file never disagrees with the state. Its
schema is public.
"""
