"""The bounded-beam search, as an object that takes records and gives rows of answers.

Its state is flat arrays (``data``), its way with a record kernels (``step``), which ask the statistics of
clusters (``clusters``). What is stored of it are facts, from which all else is made again.
"""
