"""TVM's Prelude, where ``tvm.relay.prelude`` has it."""

from __future__ import annotations

from serde.relay.tvm.prelude import Prelude

__all__ = ["Prelude"]
