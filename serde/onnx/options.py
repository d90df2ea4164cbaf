"""Options of reading and writing ONNX models."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from serde.bridge.options import ExportOptions, ImportOptions
from serde.core.records import dataclass, field
from serde.errors import OptionError
from serde.onnx.versions import DEFAULT_TARGET

if TYPE_CHECKING:
    from serde.onnx.profile import SupportedOperators

__all__ = ["OnnxExportOptions", "OnnxImportOptions"]


@dataclass(frozen=True, kw_only=True)
class OnnxExportOptions(ExportOptions):
    """Options of writing ONNX models.

    Attributes:
        opset: Version of the default operator set, from 11 on; "auto" is the lowest from 17 on
            that can say the whole model.
        intermediate_shapes: Note the types of all intermediate values.
        quantized: Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to
            be allowed as ``quantised-as-qdq``.
        save_as_external_data: Write weights to ``<name>.onnx.data`` whatever their size.
        external_data_threshold: Write weights there once they exceed this many bytes together;
            the limit of protobuf if left out.
        link_weights: Refer to weights where they lie in the files of the source, instead of
            writing them; the model must be written to the folder of these files or one above.
            Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest: With `link_weights`, a fingerprint of pieces of the files alone ("sampled"),
            or besides that their SHA-1 ("full"), for which all of them is read.
        runtime: What runs the model: "any", or "onnxruntime", whose own operators are then
            written for attention with a cache, rotary embeddings and norms by the root of the
            mean square, where they mean the same.
        profile: A runtime to write for: the name of one that serde knows, or a file that tells
            what it takes (:mod:`serde.onnx.profile`). Operators that it lacks are said in others,
            and integers of 64 bits held in 32 where it asks for that and no number changes; the
            report lists what is left.
        local_functions: Write global, composite and fused functions as local functions, from
            opset 15 on; otherwise their nodes go where they are called.
    """

    opset: int | Literal["auto"] = field(
        default=DEFAULT_TARGET,
        metadata={
            "help": "Version of the default operator set; auto is the lowest from "
            f"{DEFAULT_TARGET} on that can say the whole model.",
            "first": True,
        },
    )
    intermediate_shapes: bool = field(
        default=False, metadata={"help": "Note the types of all intermediate values."}
    )
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = field(
        default="exact", metadata={"help": "How quantised operators are written."}
    )
    save_as_external_data: bool = field(
        default=False, metadata={"help": "Write weights to a file of their own."}
    )
    external_data_threshold: int | None = field(
        default=None,
        metadata={"help": "Write weights to a file of their own beyond this many bytes."},
    )
    link_weights: bool = field(
        default=False, metadata={"help": "Refer to weights where they lie instead of writing them."}
    )
    link_digest: Literal["sampled", "full"] = field(
        default="sampled",
        metadata={"help": "How linked files are told from changed ones; full reads all of them."},
    )
    runtime: Literal["any", "onnxruntime"] = field(
        default="any", metadata={"help": "What runs the model, whose own operators may be written."}
    )
    profile: str | None = field(
        default=None,
        metadata={
            "flag": "--for",
            "metavar": "NAME|FILE",
            "help": "Runtime to write for: directml, onnxruntime, onnxruntime-web, openvino, "
            "rknn, tensorrt or webnn, or a file that tells what one takes.",
        },
    )
    local_functions: bool = field(
        default=False, metadata={"help": "Write functions as local functions, from opset 15 on."}
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.link_digest != "sampled" and not self.link_weights:
            raise OptionError(f"link_digest={self.link_digest!r}: only with link_weights")

    def require(self, *, run: bool) -> None:
        """Refuse a version of the operator set that is not written."""
        from serde.onnx.schemas import check_opset

        super().require(run=run)
        if self.opset != "auto":
            check_opset(self.opset, local_functions=self.local_functions)
        if self.supported is not None and self.opset != "auto":
            self.supported.require_opset(self.opset)

    @cached_property
    def supported(self) -> SupportedOperators | None:
        """What the runtime takes that is written for; None where there is no profile."""
        from serde.onnx.profile import read_supported

        return None if self.profile is None else read_supported(self.profile)

    @property
    def keeps_functions(self) -> bool:
        """Whether global functions are to stay whole until the bridge sees them."""
        return self.local_functions

    @property
    def keeps_stored_weights(self) -> bool:
        """Whether weights that lie in files are to stay as they are, if the graph can do it."""
        return self.link_weights


@dataclass(frozen=True, kw_only=True)
class OnnxImportOptions(ImportOptions):
    """Options of reading ONNX models.

    Attributes:
        source_opset: Version of the default operator set to take instead of what the model
            names.
        keep_initializers_as_inputs: Let inputs that have an initializer stay inputs, without
            its value; otherwise they are weights.
    """

    source_opset: int | None = field(
        default=None,
        metadata={"help": "Version of the source's default operator set, if it names a wrong one."},
    )
    keep_initializers_as_inputs: bool = field(
        default=False, metadata={"help": "Let inputs that have an initializer stay inputs."}
    )
