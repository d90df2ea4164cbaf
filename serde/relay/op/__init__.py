"""All operators, each in the file of its category; :mod:`serde.relay.ir.registry` loads them."""
