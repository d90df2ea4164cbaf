"""Sliding windows without weights."""
