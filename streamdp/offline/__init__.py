"""Offline search and samplers: clusterings of a finite set of records, and refinement of snapshots."""
