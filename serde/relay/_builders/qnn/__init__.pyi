"""Builders below ``relay.qnn``; generated from the declarations."""

from serde.relay._builders.qnn import op as op
