"""Errors under the names of ``tvm.error``: each stands for those of serde that take its place."""

from __future__ import annotations

from serde.errors import RelayError, SerdeError, TypeInferenceError, UnsupportedModelError

__all__ = [
    "DiagnosticError", "InternalError", "OpAttributeInvalid", "OpAttributeRequired",
    "OpAttributeUnImplemented", "OpError", "OpNotImplemented", "TVMError",
]  # fmt: skip

TVMError = InternalError = SerdeError
DiagnosticError = RelayError
OpError = OpNotImplemented = OpAttributeUnImplemented = UnsupportedModelError
OpAttributeInvalid = OpAttributeRequired = TypeInferenceError
