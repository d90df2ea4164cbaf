"""Namespaces of builders; they are objects of ``serde.relay``, and no modules."""
