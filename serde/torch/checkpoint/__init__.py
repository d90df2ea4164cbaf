"""Checkpoints of Hugging Face, and live modules of its package transformers, by task.

Only what transformers itself has is run, never what a checkpoint brings; nothing is fetched. What
a family is asked follows from its class, its config and the layers of the cache that it returns.
"""
