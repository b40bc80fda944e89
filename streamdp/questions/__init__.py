"""Every question about a stream once: what it takes, what it answers, and who can answer it.

Commands, the service, tools of programs and the page parse a question, ask it, and print the answer.
"""
