"""A live page: what a stream's clusters do now, kept in bounded memory and served over HTTP."""
