"""Recurrent layers."""

from __future__ import annotations

from serde.coreml.mlprogram.ops.recurrent import gru, lstm, rnn

__all__ = ["gru", "lstm", "rnn"]
