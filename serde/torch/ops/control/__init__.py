"""Conditionals and loops: importers of graphs as arguments, exporters as statements of Python."""
