"""Whole stores of models: manifests, jobs, the processes that run them, the ledger."""
