"""Relay's data model: types, expressions, modules, and what reads them."""
