"""Bytes shared by formats: file ranges, atomic writes, safe archives."""
