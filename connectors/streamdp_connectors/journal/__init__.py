"""A journal: records in the order in which they were accepted, as a source that can be read again."""
