"""What becomes of records that have been put in order: a beam's stream and a stream of log lines, behind
one face.
"""
