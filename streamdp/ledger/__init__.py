"""What is known of the latest records: their newest labels, and what these say of answers that come.

One table, record number n in row n modulo its size. ``put`` writes a record down, ``move`` is the only way
in which its label changes. Whether new clusters last and answers stay is read off it.
"""
