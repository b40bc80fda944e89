"""The way of one record through a beam.

It is scored against all clusters at once; the best children of all hypotheses are chosen and committed, in
place where they agree; what became of labels is announced.
"""
