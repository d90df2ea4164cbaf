"""Recurrent layers, in the groups of :mod:`serde.relay.op.recurrent`; no others."""
