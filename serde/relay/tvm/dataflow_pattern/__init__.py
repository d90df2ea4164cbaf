"""Patterns of expressions: their language, matching, grouping: ``relay.dataflow_pattern``."""
