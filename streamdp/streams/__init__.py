"""What becomes of records that have been put in order.

A stream is a search with what all streams have: corrections by hand, events, the ledger, a state.
"""
