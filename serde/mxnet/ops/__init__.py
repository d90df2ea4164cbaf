"""Converters of MXNet operators, in the categories of :mod:`serde.relay.op`."""
