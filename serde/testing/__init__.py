"""Tests that every bridge gets for nothing; needs pytest.

A package that brings a format subclasses :class:`BridgeSuite` in a test module of its own::

    class TestToy(BridgeSuite):
        bridge = BRIDGE
        operators = ("add", "multiply", "tanh")
"""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("serde.testing.suite")

from serde.testing.models import sample_model, small_model  # noqa: E402
from serde.testing.suite import BridgeSuite  # noqa: E402

__all__ = ["BridgeSuite", "sample_model", "small_model"]
