"""Written folders as sources: their Python is read as data, and never run.

What stands here knows the subset of Python that serde writes; operators are converted elsewhere.
"""
