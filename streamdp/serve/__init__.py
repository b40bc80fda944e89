"""The service: records in and answers out over HTTP, by way of a journal (docs/serve.md).

A request is answered when its records are in the store. Whatever is killed, what was acknowledged is not
lost.
"""
