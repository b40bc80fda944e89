"""From what a search says to what users get: answers, events, summaries of clusters.

The announcer passes rows and revisions to the ledger, which writes them as lines. Objects are made for those
who ask.
"""
