"""Stories out of whatever a run left: answers, a state, a store, a service; and what is made of them.

One function opens any of these. Reports, comparisons and pages are made of the stories that it gives.
"""
