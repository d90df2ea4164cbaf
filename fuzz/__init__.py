"""Hostile files for every reader: made by mutation, judged by the promise of bounded work."""
