"""One stream over several engines: shards, which see a share of it, and one that joins their clusters."""
