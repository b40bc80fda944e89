"""The service: records in and answers out over HTTP, by way of a journal (docs/serve.md)."""
