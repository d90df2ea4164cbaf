"""Many models: batches, the stores they lie in, the servers they go to."""
