"""Moves trained models between formats, through Relay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any as AnyValue
from typing import Literal, overload

import coremltools  # type: ignore[import-not-found,import-untyped,unused-ignore]
import mxnet  # type: ignore[import-not-found,import-untyped,unused-ignore]
import mxnet.gluon  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
import onnx  # type: ignore[import-not-found,import-untyped,unused-ignore]

from serde import relay as relay
from serde import serving as serving
from serde import target as target
from serde._version import __version__ as __version__
from serde.batching.records import Outcome
from serde.batching.report import BatchReport
from serde.checking.bisection import Bisection
from serde.checking.difference import ModelDiff
from serde.checking.tolerance import Tolerance
from serde.conversion.signature import FormatName
from serde.coreml.interface.input_types import Image, Range
from serde.engine.foreign import register_kernel as register_kernel
from serde.errors import FormatError as FormatError
from serde.errors import MissingDependency as MissingDependency
from serde.errors import OptionError as OptionError
from serde.errors import SerdeError as SerdeError
from serde.errors import UnsupportedModelError as UnsupportedModelError
from serde.limits import Limits
from serde.mxnet.live import Params
from serde.relax.runnable import Runnable as Runnable
from serde.relay.ir.dims import Any, SymDim
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.report import Report as Report
from serde.target.hybrid import HybridExecutor as HybridExecutor
from serde.target.runners import register_runner as register_runner
from serde.viewing.page import Page
from serde.walk.user_converters import exports as exports
from serde.walk.user_converters import imports as imports
from serde.weights import Array

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["coreml"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["mxnet"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["nnef"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    nnef_fragments: bool = False,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["onnx"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["relax"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["relay"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    strict: bool = False,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["torch"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: Literal["tvm"],
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: None,
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    params_epoch: int = 0,
    nnef_fragments: bool = False,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    freeze_vars: bool = False,
    strict: bool = False,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended.

    Args:
        sources: Paths, globs, folders, URLs, manifests (``.jsonl``, ``.csv``, ``.txt``), and
            mappings as a line of a manifest has them: ``{"source": "a.onnx", "opset": 13}``.
        to: Name of the target's format.
        out: Folder or URL that the targets are written to.
        source_format: Name of the sources' format; recognised by content if left out.
        check: Run source and target on this many seeded inputs before the target appears.
        tolerance: What the check accepts; by dtype if left out.
        dims: Lengths of dynamic dimensions during the check.
        check_data: Path of inputs to check with instead of seeded ones; see :func:`convert`.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        workers: How many models are converted at the same time; as there are cores if left out.
        scheduler: Address of a Dask scheduler, a connected ``distributed.Client``, ``"dask"`` for
            a cluster of this machine, or what runs the jobs; without Dask if left out.
        time_limit: Seconds that the process of one model may take.
        memory_limit: Bytes that the process of one model may allocate; on Linux only.
        name_limit: Names of files and folders that may be looked at for one glob or folder.
        manifest_code: Whether lines of manifests may name what is run: converters, and ``cc``.
        manifest_targets: Whether lines of manifests may name targets outside `out`.
        sandbox: Whether the process of a model is kept to its sources and its target, by Landlock
            of Linux; where the kernel has it if left out.
        retries: How often a model is tried again whose process was killed by somebody else.
        ledger: File of what is done; ``.serde/ledger.sqlite`` in a local `out` if left out.
        retry_failed: Try again what failed in an earlier run.
        overwrite: Whether files beside targets may be replaced that serde did not write.
        scratch: Folder for what is fetched from stores meanwhile; the system's if left out.
        storage_options: What ``fsspec`` gives to file systems; the environment otherwise.
        progress: Called with each outcome as it comes in.
        options: Options of the sources, of the passes and of the target, for all models.

    Returns:
        What became of the models; iterating over it gives an outcome for each.

    Raises:
        FormatError: The ledger is another file.
        MissingDependency: A package is not installed.
        OptionError: An option is unknown or cannot be used, nothing can be written to `out`, or
            another run has the ledger open. What is wrong with a model is never raised.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing coreml:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: str,
    out: str | PathLike[str],
    source_format: FormatName,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    **options: AnyValue,
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended."""

@overload
def batch(
    sources: str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]],
    *,
    to: str,
    out: str | PathLike[str],
    source_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: str | PathLike[str] | None = None,
    yardstick: bool = True,
    workers: int | None = None,
    scheduler: AnyValue = None,
    time_limit: float | None = None,
    memory_limit: int | None = None,
    name_limit: int = 1000000,
    manifest_code: bool = False,
    manifest_targets: bool = False,
    sandbox: bool | None = None,
    retries: int = 1,
    ledger: str | PathLike[str] | None = None,
    retry_failed: bool = False,
    overwrite: bool = False,
    scratch: str | PathLike[str] | None = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    progress: Callable[[Outcome], object] | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
) -> BatchReport:
    """Convert many models, each in a process of its own, and go on where an earlier run ended."""

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["coreml"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["mxnet"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["nnef"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["onnx"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["relax"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["relay"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["torch"],
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: None = None,
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name.

    Args:
        source: The model to be matched: a path or URL, several of these, bytes or a live object.
        target: Path or URL of the model that must match it.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        dims: Lengths of dynamic dimensions by name.
        check_data: Inputs to run with instead of seeded ones; see :func:`convert`.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages; a new one if left out.
        options: Options of the source, such as ``input_shapes``.

    Raises:
        CheckError: The models have no value in common, or cannot be run.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: FormatName,
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name."""

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: FormatName,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name."""

@overload
def bisect(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str,
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
) -> Bisection:
    """Return where two models begin to differ, by the values inside that both have by name."""

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["coreml"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["mxnet"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["nnef"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["onnx"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["relax"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["relay"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: Literal["torch"],
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: None = None,
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs.

    Args:
        source: The model to be matched: a path or URL, several of these, bytes or a live object.
        target: Path or URL of the model that must match it.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        runs: Number of sets of inputs.
        tolerance: What is accepted; by dtype if left out.
        dims: Lengths of dynamic dimensions by name; if left out, those that are declared, or
            the first usual ones at which the source runs.
        check_data: Inputs to check with instead of seeded ones; see :func:`convert`.
        check_images: Colour layout of the input that image files are for, by its name: ``RGB``,
            ``BGR`` or ``GRAYSCALE``; by the number of its channels if empty.
        float16: The target computes in float16; it is judged by what that can hold. Of a target
            that is read as Relay, this is found out.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with the verdicts; a new one if left out.
        options: Options of the source, such as ``input_shapes``; a target that does not say its
            shapes gets those of the source.

    Returns:
        The report; ``report.passed`` says whether all outputs match that can tell, and
        ``report.says_nothing`` whether none can.

    Raises:
        CheckError: The comparison could not be made.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes of the source cannot be converted.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: FormatName,
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs."""

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: FormatName,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs."""

@overload
def check(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str,
    target_format: str | None = None,
    runs: int = 1,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    check_images: Mapping[str, str] | None = None,
    float16: bool = False,
    yardstick: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
) -> Report:
    """Run two models on the same seeded inputs and compare their outputs."""

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["coreml"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["mxnet"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["nnef"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["onnx"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["relax"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["relay"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: Literal["torch"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        target: What to compile for: a kind or tag of TVM (``"llvm"``, ``"cuda"``,
            ``"raspberry-pi/4b-aarch64"``), or a mapping such as
            ``{"kind": "llvm", "mcpu": "skylake"}``.
        cc: C++ compiler that links code for another machine; one that TVM finds if left out.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before TVM; ``freeze_vars``
            makes weights constants of the code.

    Returns:
        What runs the model; ``save("net.so")`` writes it.

    Raises:
        CompileError: TVM refuses the module, or crashed.
        FormatError: The bytes are malformed.
        MissingDependency: TVM is not installed, or as a release that is not known.
        OptionError: An option is unknown or missing, or TVM knows no such target.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing relax:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: FormatName,
    report: Report | None = None,
    **options: AnyValue,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own."""

@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    format: str,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
) -> Runnable:
    """Compile a model of any format with TVM, in a process of its own."""

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["coreml"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["mxnet"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["nnef"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    nnef_fragments: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["onnx"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["relax"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["relay"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    strict: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["torch"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: Literal["tvm"],
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    params_epoch: int = 0,
    nnef_fragments: bool = False,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    freeze_vars: bool = False,
    strict: bool = False,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework; an
            archive of SageMaker or of a model server with what it says of the inputs.
        target: Where to write: a path or URL.
        params: Weights that belong to `source`, where it does not hold them; a path or URL, or
            arrays by name.
        source_format: Name of the source's format; recognised by content if left out.
        target_format: Name of the target's format; by suffix if left out.
        check: Run source and target on this many seeded inputs before the target appears.
        tolerance: What the check accepts; by dtype if left out.
        dims: Lengths of dynamic dimensions during the check; if left out, those that are
            declared, or the first usual ones at which the source runs.
        check_data: Inputs to check with instead of seeded ones, which also asks for the check: a
            path (``.npy``, ``.npz``, an image, or a directory with one of these, or one of ONNX's
            ``test_data_set_0``, for each sample), an array, a mapping of arrays by input, or a
            list of arrays or mappings.
        yardstick: Measure outputs that do not agree at once by the exact result, in float64.
        tensor_mapping: A JSON file to write that tells what inputs, outputs, weights and nodes
            of the source are called in the target; see
            :func:`serde.conversion.mapping.tensor_mapping`.
        overwrite: Whether files beside the target may be replaced that serde did not write:
            MXNet's symbol and parameters, Relay's parameters.
        storage_options: What ``fsspec`` gives to the file system of a URL, such as
            ``{"anon": True}``; the environment says it otherwise.
        report: Filled with all of it; a new one if left out.
        options: Options of the source, of the passes and of the target, and what makes the target
            smaller, such as ``int8=True, calibration="photos"``.

    Returns:
        The report.

    Raises:
        CheckError: The check failed or could not be made, or a smaller model loses more than is
            allowed; nothing is written.
        FormatError: The bytes are malformed.
        OptionError: An option is unknown, missing or cannot be used.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing coreml:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.

    Options of making the target smaller:
        int8 (bool | Literal['static', 'dynamic', 'weights'], default False): Quantise to integers
            of 8 bits: "static", activations too, by ranges measured on calibration; "dynamic",
            activations by ranges found at run time; "weights" alone; or True for what the target's
            tool is mostly used for.
        int4 (bool, default False): Quantise weights to 4 bits.
        palettize (int | None, default None): Bits of an index into a table of values, which each
            weight becomes: 1, 2, 3, 4, 6 or 8.
        sparsity (float | None, default None): Share of each weight's elements, the smallest, that
            become zero; from 0 to 1.
        calibration (AnyValue, default None): Inputs on which activations are measured and accuracy
            is told: a path, an array, a mapping of arrays by input, or a list of these.
        calibration_method (Literal['minmax', 'entropy', 'percentile'], default 'minmax'): How a
            range follows from what was measured.
        activation_type (Literal['int8', 'uint8', 'int16', 'uint16'] | None, default None): Integers
            of activations; the tool's own choice if left out.
        weight_type (Literal['int8', 'uint8'] | None, default None): Integers of weights, likewise.
        per_channel (bool, default True): Give each output channel of a weight a scale of its own.
        symmetric (bool, default False): Keep the zero point of activations at zero, as TensorRT
            wants it.
        reduce_range (bool, default False): Use 7 of the 8 bits of weights, for processors whose
            sums of products saturate.
        int8_exclude (tuple[str, ...], default ()): Nodes of the target that stay as they are.
        min_agreement (float | None, default None): Least share of samples whose best class stays
            the same, for outputs that are scores of classes; with less, nothing is written.
        min_cosine (float | None, default None): Least cosine between the source's outputs and the
            smaller model's, likewise.
    """

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: FormatName,
    target_format: str | None = None,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Convert a model and write it."""

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: FormatName,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Report:
    """Convert a model and write it."""

@overload
def convert(
    source: AnyValue,
    target: str | PathLike[str],
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: str,
    check: bool | int = False,
    tolerance: Tolerance | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    yardstick: bool = True,
    tensor_mapping: str | PathLike[str] | None = None,
    overwrite: bool = False,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Report:
    """Convert a model and write it."""

@overload
def diff(
    left: AnyValue,
    right: AnyValue,
    *,
    left_format: str | None = None,
    right_format: str | None = None,
    weights: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
) -> ModelDiff:
    """Return what differs between two models of any formats.

    Both are read as Relay, as their formats say it, before any pass. Weights are compared in
    bounded pieces.

    Args:
        left: A path or URL, several of these, bytes or a live object of a framework.
        right: The other model, likewise.
        left_format: Name of the format of `left`; recognised by content if left out.
        right_format: Name of the format of `right`; likewise.
        weights: Whether the values of weights are compared; otherwise only the graphs are, in
            which their shapes and dtypes count.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages.
        options: Options of the formats, such as ``input_shapes``; each model gets those that
            its format has.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def diff(
    left: AnyValue,
    right: AnyValue,
    *,
    left_format: FormatName,
    right_format: str | None = None,
    weights: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> ModelDiff:
    """Return what differs between two models of any formats."""

@overload
def diff(
    left: AnyValue,
    right: AnyValue,
    *,
    left_format: str | None = None,
    right_format: FormatName,
    weights: bool = True,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> ModelDiff:
    """Return what differs between two models of any formats."""

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> coremltools.models.MLModel:
    """Return a framework's model in another format, or write it.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> tuple[mxnet.Symbol, Params]:
    """Return a framework's model in another format, or write it.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    nnef_fragments: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> AnyValue:
    """Return a framework's model in another format, or write it.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    nnef_fragments: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> onnx.ModelProto:
    """Return a framework's model in another format, or write it.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> AnyValue:
    """Return a framework's model in another format, or write it.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    strict: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> tuple[IRModule, dict[str, Array]]:
    """Return a framework's model in another format, or write it.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    strict: bool = False,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> AnyValue:
    """Return a framework's model in another format, or write it.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tvm"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Runnable:
    """Return a framework's model in another format, or write it.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tvm"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    params_epoch: int = 0,
    nnef_fragments: bool = False,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    freeze_vars: bool = False,
    strict: bool = False,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> Path:
    """Return a framework's model in another format, or write it.

    Args:
        model: A symbol, Gluon block or module, or anything :func:`to_relay` takes.
        params: Weights of `model`, where it does not hold them.
        format: Name of the target format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        overwrite: Whether files beside `path` may be replaced that serde did not write.
        report: Filled with stages and gaps.
        options: Options of the source, of the passes and of the target, such as
            ``input_shapes={'data': ('N', 3, 224, 224)}`` and ``opset=17``; and what makes the
            target smaller, such as ``int8=True, calibration="photos"``.

    Returns:
        The native object (for ONNX an ``onnx.ModelProto``); with `path` the path written.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown, missing or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing coreml:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.

    Options of making the target smaller:
        int8 (bool | Literal['static', 'dynamic', 'weights'], default False): Quantise to integers
            of 8 bits: "static", activations too, by ranges measured on calibration; "dynamic",
            activations by ranges found at run time; "weights" alone; or True for what the target's
            tool is mostly used for.
        int4 (bool, default False): Quantise weights to 4 bits.
        palettize (int | None, default None): Bits of an index into a table of values, which each
            weight becomes: 1, 2, 3, 4, 6 or 8.
        sparsity (float | None, default None): Share of each weight's elements, the smallest, that
            become zero; from 0 to 1.
        calibration (AnyValue, default None): Inputs on which activations are measured and accuracy
            is told: a path, an array, a mapping of arrays by input, or a list of these.
        calibration_method (Literal['minmax', 'entropy', 'percentile'], default 'minmax'): How a
            range follows from what was measured.
        activation_type (Literal['int8', 'uint8', 'int16', 'uint16'] | None, default None): Integers
            of activations; the tool's own choice if left out.
        weight_type (Literal['int8', 'uint8'] | None, default None): Integers of weights, likewise.
        per_channel (bool, default True): Give each output channel of a weight a scale of its own.
        symmetric (bool, default False): Keep the zero point of activations at zero, as TensorRT
            wants it.
        reduce_range (bool, default False): Use 7 of the 8 bits of weights, for processors whose
            sums of products saturate.
        int8_exclude (tuple[str, ...], default ()): Nodes of the target that stay as they are.
        min_agreement (float | None, default None): Least share of samples whose best class stays
            the same, for outputs that are scores of classes; with less, nothing is written.
        min_cosine (float | None, default None): Least cosine between the source's outputs and the
            smaller model's, likewise.
    """

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    path: str | PathLike[str] | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a framework's model in another format, or write it."""

@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: str,
    path: str | PathLike[str] | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    int8: bool | Literal["static", "dynamic", "weights"] = False,
    int4: bool = False,
    palettize: int | None = None,
    sparsity: float | None = None,
    calibration: AnyValue = None,
    calibration_method: Literal["minmax", "entropy", "percentile"] = "minmax",
    activation_type: Literal["int8", "uint8", "int16", "uint16"] | None = None,
    weight_type: Literal["int8", "uint8"] | None = None,
    per_channel: bool = True,
    symmetric: bool = False,
    reduce_range: bool = False,
    int8_exclude: Sequence[str] = (),
    min_agreement: float | None = None,
    min_cosine: float | None = None,
) -> AnyValue:
    """Return a framework's model in another format, or write it."""

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["coreml"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
) -> coremltools.models.MLModel:
    """Return a Relay model in a format, or write it.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["coreml"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing coreml:
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["mxnet"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a Relay model in a format, or write it.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["mxnet"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    params_epoch: int = 0,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["nnef"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    nnef_fragments: bool = False,
) -> AnyValue:
    """Return a Relay model in a format, or write it.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["nnef"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    nnef_fragments: bool = False,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["onnx"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
) -> onnx.ModelProto:
    """Return a Relay model in a format, or write it.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["onnx"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relax"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    freeze_vars: bool = False,
) -> AnyValue:
    """Return a Relay model in a format, or write it.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relax"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    freeze_vars: bool = False,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relay"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    strict: bool = False,
) -> tuple[IRModule, dict[str, Array]]:
    """Return a Relay model in a format, or write it.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relay"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    strict: bool = False,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["torch"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
) -> AnyValue:
    """Return a Relay model in a format, or write it.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["torch"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["tvm"],
    path: None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
) -> Runnable:
    """Return a Relay model in a format, or write it.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["tvm"],
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    freeze_vars: bool = False,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
) -> Path:
    """Return a Relay model in a format, or write it.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: None = None,
    path: str | PathLike[str],
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    custom_ops: Iterable[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    minimum_deployment_target: str = "iOS15",
    compute_precision: Literal["float16", "float32"] | None = None,
    float32_ops: Iterable[str] = (),
    images: Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str] = {},
    output_images: Mapping[str, Image | str] | Sequence[str] = {},
    class_labels: Sequence[str | int] | PathLike[str] | None = None,
    mode: Literal["classifier", "regressor"] | None = None,
    predicted_feature_name: str | None = None,
    predicted_probabilities_output: str | None = None,
    ranges: Mapping[str, Range | Sequence[int]] = {},
    enumerated_shapes: Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]] = {},
    states: Mapping[str, str] = {},
    author: str | None = None,
    license: str | None = None,
    model_version: str | None = None,
    short_description: str | None = None,
    descriptions: Mapping[str, str] = {},
    metadata: Mapping[str, str] = {},
    params_epoch: int = 0,
    nnef_fragments: bool = False,
    opset: int | Literal["auto"] = 17,
    intermediate_shapes: bool = False,
    quantized: Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"] = "exact",
    save_as_external_data: bool = False,
    external_data_threshold: int | None = None,
    link_weights: bool = False,
    link_digest: Literal["sampled", "full"] = "sampled",
    local_functions: bool = False,
    freeze_vars: bool = False,
    strict: bool = False,
    control_flow: Literal["python", "hop"] = "python",
    training: bool = True,
    tvm_target: str | Mapping[str, AnyValue] = "llvm",
    cc: str | None = None,
) -> Path:
    """Return a Relay model in a format, or write it.

    Args:
        model: A :class:`RelayModel`, or a module or function, alone or in a pair with its
            parameters: arrays by name. Types are inferred where it has none.
        format: Name of the format; by the suffix of `path` if left out.
        path: Where to write; without it the native object is returned.
        overwrite: Whether files beside `path` may be replaced that serde did not write.
        report: Filled with stages and gaps.
        options: Options of the target's format and of the passes before it.

    Returns:
        The native object, complete; with `path` the path written.

    Raises:
        OptionError: An option is unknown or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.

    Options of writing coreml:
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.
        minimum_deployment_target (str, default 'iOS15'): Oldest system that is to run the model:
            iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for NeuralNetworks.
        compute_precision (Literal['float16', 'float32'] | None, default None): What a program
            computes in, float16 if left out; its inputs and outputs stay as they are. Of a
            NeuralNetwork what its weights are stored in, float32 if left out.
        float32_ops (frozenset[str], default frozenset()): What a program in float16 computes in
            float32 besides what leaves the range or the precision of float16: operators of Relay,
            names of nodes, or the groups norms, reductions and resizing.
        images (Mapping[str, input_types.Image], default {}): Inputs that are images, by name: a
            colour layout (RGB, BGR, GRAYSCALE, from iOS16 on GRAYSCALE_FLOAT16), or a mapping of
            color_layout, scale and bias (one number, or one for each channel in the order of the
            layout; also red_bias and the like). The network gets scale * pixels + bias. A list of
            names stands for RGB images as they are.
        output_images (Mapping[str, input_types.Image], default {}): Outputs that are images, by
            name, with a colour layout.
        class_labels (tuple[str | int, ...] | None, default None): Class labels of a classifier in
            the order of its scores, text or integers, or a file with one on each line; those of the
            source if left out.
        mode (Literal['classifier', 'regressor'] | None, default None): classifier, or regressor for
            a network that gives numbers. Without it, a model with class labels is a classifier.
        predicted_feature_name (str | None, default None): What the output with the label of the
            best class is called; that with all scores has _probs behind it; classLabel if left out.
        predicted_probabilities_output (str | None, default None): The output that holds the scores
            of the classes, where there are several outputs.
        ranges (Mapping[str, input_types.Range], default {}): Lengths that a dynamic dimension may
            have, by its name: (lower, upper), or (lower, upper, default); 1 to 1024 if left out.
        enumerated_shapes (Mapping[str, tuple[tuple[int, ...], ...]], default {}): Shapes that an
            input may have, by name; the first is the default.
        states (Mapping[str, str], default {}): Outputs that are later values of inputs, by input,
            which Core ML keeps as states from iOS18 on; those of the source if left out. They are
            float16.
        author (str | None, default None): Who made the model.
        license (str | None, default None): Under which licence.
        model_version (str | None, default None): Version of the model.
        short_description (str | None, default None): What it does; what the source says of it if
            left out.
        descriptions (Mapping[str, str], default {}): What inputs and outputs are, by name.
        metadata (Mapping[str, str], default {}): Further facts that the model is to carry, texts by
            name.

    Options of writing mxnet:
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.

    Options of writing nnef:
        nnef_fragments (bool, default False): Keep functions of the model, and what it repeats, as
            fragments of its own.

    Options of writing onnx:
        opset (int | Literal['auto'], default 17): Version of the default operator set, from 11 on;
            "auto" is the lowest from 17 on that can say the whole model.
        intermediate_shapes (bool, default False): Note the types of all intermediate values.
        quantized (Literal['exact', 'qdq', 'qlinear', 'onnxruntime', 'tensorrt'], default 'exact'):
            Quantised operators step by step in integers ("exact"), or on floats between
            QuantizeLinear and DequantizeLinear ("qdq"), or besides that with convolutions and
            products as QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that
            "onnxruntime" or "tensorrt" fuses. All but the first round halves to even and are to be
            allowed as quantised-as-qdq.
        save_as_external_data (bool, default False): Write weights to <name>.onnx.data whatever
            their size.
        external_data_threshold (int | None, default None): Write weights there once they exceed
            this many bytes together; the limit of protobuf if left out.
        link_weights (bool, default False): Refer to weights where they lie in the files of the
            source, instead of writing them; the model must be written to the folder of these files
            or one above. Only weights that the conversion makes anew are written. The model notes a
            fingerprint of the files, so that serde finds out if they change later.
        link_digest (Literal['sampled', 'full'], default 'sampled'): With link_weights, a
            fingerprint of pieces of the files alone ("sampled"), or besides that their SHA-1
            ("full"), for which all of them is read.
        local_functions (bool, default False): Write global, composite and fused functions as local
            functions, from opset 15 on; otherwise their nodes go where they are called.

    Options of writing relax:
        freeze_vars (bool, default False): Put the weights into the module as constants; they are
            parameters behind the inputs otherwise.

    Options of writing relay:
        strict (bool, default False): Whether the text is legal for TVM 0.18 rather than serde's
            dialect.

    Options of writing torch:
        control_flow (Literal['python', 'hop'], default 'python'): Conditionals and loops as
            statements of Python, which torch.jit.script takes, or as torch.cond and while_loop
            ("hop"), which torch.export takes.
        training (bool, default True): Keep what only matters in training: dropout, and batch
            normalisations as layers of their own. Without it the module is smaller and only
            predicts.

    Options of writing tvm:
        tvm_target (str | Mapping[str, AnyValue], default 'llvm'): What the library is compiled for:
            a kind or tag of TVM, or a mapping such as {"kind": "llvm", "mcpu": "skylake"}, also as
            text in JSON.
        cc (str | None, default None): What links the library: a C++ compiler for the target; one
            that TVM finds if left out.
    """

@overload
def from_relay(
    model: AnyValue,
    *,
    format: FormatName,
    path: str | PathLike[str] | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue:
    """Return a Relay model in a format, or write it."""

@overload
def from_relay(
    model: AnyValue,
    *,
    format: str,
    path: str | PathLike[str] | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    allow: Iterable[str] = (),
) -> AnyValue:
    """Return a Relay model in a format, or write it."""

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before MXNet's.

    Returns:
        The ``mx.Symbol``, and its parameters: NDArrays by bare name, with ``arg`` and ``aux``.
        A model with scalars or empty tensors runs under ``mxnet.util.np_shape()``.

    Raises:
        FormatError: The bytes are malformed.
        MissingDependency: MXNet is not installed; :func:`convert` writes its files without it.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing mxnet:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    report: Report | None = None,
    **options: AnyValue,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters."""

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> tuple[mxnet.Symbol, Params]:
    """Return a model of any format as an MXNet symbol and its parameters."""

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters.

    The block takes its inputs in the order of the model. It can be trained: batch normalisations
    are kept unless ``keep_batch_norm=False``, and constants of the graph are left alone.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        ctx: MXNet's device for the parameters; the CPU if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format and of the passes before MXNet's.

    Raises:
        FormatError: The bytes are malformed.
        MissingDependency: MXNet is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
        simplify (bool, default True): Make the model smaller and faster where its results stay the
            same: merge equal nodes, drop those without effect, fold batch normalisations. Without
            it, only what targets need is done: functions inlined, shapes and constants evaluated,
            operators that only matter in training dropped.
        keep_batch_norm (bool, default False): Leave batch normalisations as they are; otherwise one
            that follows a convolution or dense layer becomes part of its weights.
        float16 (bool, default False): Compute in float16.
        keep_io_types (bool, default False): With float16, leave the dtypes of inputs and outputs as
            they are.
        op_block_list (frozenset[str], default frozenset()): With float16, Relay operators or node
            names that stay float32, besides the default list.

    Options of writing mxnet:
        custom_ops (frozenset[str], default frozenset()): Operators of other frameworks that Relay
            does not know, by name, which are written as custom operators of the target.
        params_epoch (int, default 0): The number in the name prefix-NNNN.params.
    """

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    ctx: AnyValue = None,
    report: Report | None = None,
    **options: AnyValue,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters."""

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str,
    ctx: AnyValue = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
    simplify: bool = True,
    keep_batch_norm: bool = False,
    float16: bool = False,
    keep_io_types: bool = False,
    op_block_list: Iterable[str] = (),
    custom_ops: Iterable[str] = (),
    params_epoch: int = 0,
) -> mxnet.gluon.SymbolBlock:
    """Return a model of any format as a Gluon ``SymbolBlock`` with its parameters."""

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass.

    Args:
        source: A path, several paths, bytes or a live object of a framework.
        params: Weights that belong to `source`, where it does not hold them.
        format: Name of the source's format; recognised by content if left out.
        report: Filled with stages and gaps.
        options: Options of the source's format, such as ``input_shapes``; ``inputs`` and
            ``outputs``, if only the part between them is wanted.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.

    Options of the passes between:
        inputs (tuple[str, ...], default ()): Values or nodes of the source that are the inputs of
            the part to convert; those of the model that the outputs depend on, if left out.
        outputs (tuple[str, ...], default ()): Values or nodes of the source that are the outputs of
            the part to convert; those of the model, if left out. name:1 is the second result of a
            node.
        rename_inputs (Mapping[str, str], default {}): Other names of inputs by their names; options
            of a target use the new ones.
        rename_outputs (Mapping[str, str], default {}): Other names of outputs by their names,
            likewise.
    """

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    report: Report | None = None,
    **options: AnyValue,
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass."""

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: str,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    inputs: Sequence[str] = (),
    outputs: Sequence[str] = (),
    rename_inputs: Mapping[str, str] = {},
    rename_outputs: Mapping[str, str] = {},
) -> RelayModel:
    """Return a model as Relay, as its format says it, before any pass."""

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["coreml"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
) -> coremltools.models.MLModel:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["coreml"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["mxnet"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
) -> tuple[mxnet.Symbol, Params]:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["mxnet"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["nnef"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> AnyValue:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["nnef"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["onnx"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
) -> onnx.ModelProto:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["onnx"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["relax"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> AnyValue:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["relax"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading relax:
        function (str | None, default None): The function to read, if it is not called main and
            there are several.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name (relax.nn.relu): functions of a list of Relay expressions and a dict of
            attributes, which return one expression or several.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["relay"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
) -> tuple[IRModule, dict[str, Array]]:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["relay"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    lift_constants: int | None = 256,
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: None = None,
    params: AnyValue = None,
    source_format: Literal["torch"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
) -> AnyValue:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: Literal["torch"],
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    default_dtype: str = "float32",
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What operators
            become, by name: functions of a list of Relay expressions (and of Python's values) and a
            list of their dtypes, which return one expression or several.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str],
    params: AnyValue = None,
    source_format: None = None,
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
    function: str | None = None,
    pipeline_model: str | None = None,
    optional_inputs: Literal["inputs", "defaults"] = "inputs",
    epoch: int | None = None,
    widen_weights: bool | None = None,
    keep_labels: bool = False,
    custom_convert_map: Mapping[str, Callable[..., AnyValue]] = {},
    source_opset: int | None = None,
    keep_initializers_as_inputs: bool = False,
    lift_constants: int | None = 256,
    example_inputs: AnyValue = None,
    dynamic_shapes: AnyValue = None,
    default_dtype: str = "float32",
) -> Path:
    """Show a model as a page of HTML, or what differs between two.

    The page is one file that asks for nothing from anywhere. It draws the graph as its format
    says it, before any pass, with what repeats folded. A model that cannot be converted is shown
    as far as it could be read, with its gaps marked.

    Args:
        source: A path or URL, several of these, bytes or a live object of a framework.
        target: Another model that is compared with it, likewise.
        path: Where to write the page.
        params: Weights that belong to `source`, where it does not hold them.
        source_format: Name of the format of `source`; recognised by content if left out.
        target_format: Name of the format of `target`, likewise.
        weights: Whether weights are read: their statistics and histograms, and with two models
            which of them differ.
        seconds: Time for the statistics of a model's weights; of what is left then, samples are
            read.
        values: With two models, whether both are run to compare the values inside.
        dims: Lengths of dynamic dimensions by name, for that run.
        check_data: Inputs of that run instead of seeded ones; see :func:`convert`.
        storage_options: What ``fsspec`` gives to the file system of a URL.
        report: Filled with stages and gaps.
        options: Options of the source's format, such as ``input_shapes``; the target gets
            those that its format has.

    Returns:
        The page, which a notebook shows; with `path`, it is written there too.

    Raises:
        FormatError: The bytes are malformed.
        OptionError: An option is unknown or missing, or nothing can be written at `path`.

    Options of every source:
        input_shapes (Mapping[str, Sequence[DimLike]], default {}): Shape of each input: integers,
            names of dynamic dimensions, "?" (also -1 or None) for one without a name; a bare shape
            if there is one input.
        input_dtypes (Mapping[str, str], default {}): dtype of each input that is not what the
            format says or implies; a bare dtype if there is one input.
        fix_inputs (Mapping[str, AnyValue], default {}): Values of inputs, which are no inputs then:
            a number (for all elements), an array, or the path of a .npy file. Branches that they
            decide against are left.
        allow (frozenset[str], default frozenset()): Names of lossy steps that may be taken.
        converters (tuple[UserConverter, ...], default ()): Functions of yours that convert
            operators: by name, decorated by serde.imports or serde.exports, or in files of these.
        keep_unknown (bool, default False): Keep operators that nobody can convert as serde.foreign.
        result_types (Mapping[str, tuple[TensorType, ...]], default {}): Types of what such
            operators give, by the node's name: "float32[1,10]", of several results a list.
        labels (tuple[str, ...], default ()): Class labels, in the order of the scores, of a model
            that says none itself.
        limits (Limits, default Limits(nodes=10000, elements=134217728, constants=33554432,
            terms=64, turns=4096, depth=32, values=67108864)): What the conversion may take beyond
            what the source holds, by the names that :class:serde.limits.Limits has: {"nodes":
            1_000_000}.

    Options of reading coreml:
        function (str | None, default None): Which function of an ML Program to read; the one it
            runs by default if left out.
        pipeline_model (str | None, default None): Which model of a pipeline to read alone, by its
            name or its number from 0; all of them, one after the other, if left out.
        optional_inputs (Literal['inputs', 'defaults'], default 'inputs'): Whether the thresholds of
            a pipeline that may be left out are inputs of what is read, or have their defaults
            always.

    Options of reading mxnet:
        epoch (int | None, default None): Which prefix-NNNN.params to read; the newest if left out.
        widen_weights (bool | None, default None): Compute weights of 16 bits as float32; by default
            where inputs or other weights are float32, as MXNet does when it loads them into such a
            net.
        keep_labels (bool, default False): Keep inputs that only training needs, such as labels, as
            inputs that nothing uses; otherwise they are left out.

    Options of reading nnef:
        custom_convert_map (Mapping[str, Callable[..., AnyValue]], default {}): What fragments
            become, by name, those of the standard included: functions of a list of Relay
            expressions and a dict of further arguments, which return one expression or several.
            Fragments of the model's own are not expanded then.

    Options of reading onnx:
        source_opset (int | None, default None): Version of the default operator set to take instead
            of what the model names.
        keep_initializers_as_inputs (bool, default False): Let inputs that have an initializer stay
            inputs, without its value; otherwise they are weights.

    Options of reading relay:
        lift_constants (int | None, default 256): Constants of more bytes than this become weights;
            None keeps them all.

    Options of reading torch:
        example_inputs (AnyValue, default None): Arguments with which a live module is exported or
            traced.
        dynamic_shapes (AnyValue, default None): Which of their dimensions may have any length, as
            torch.export takes it.
        default_dtype (str, default 'float32'): The dtype of numbers with a fraction, and of inputs
            of TorchScript that declare none.
    """

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str] | None = None,
    params: AnyValue = None,
    source_format: FormatName,
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Page:
    """Show a model as a page of HTML, or what differs between two."""

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str] | None = None,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: FormatName,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Page:
    """Show a model as a page of HTML, or what differs between two."""

@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    path: str | PathLike[str] | None = None,
    params: AnyValue = None,
    source_format: str,
    target_format: str | None = None,
    weights: bool = True,
    seconds: float = 20.0,
    values: bool = True,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    input_shapes: Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None] = {},
    input_dtypes: Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue] = {},
    fix_inputs: Mapping[str, AnyValue] = {},
    allow: Iterable[str] = (),
    converters: Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str] = (),
    keep_unknown: bool = False,
    result_types: Mapping[str, str | TensorType | Sequence[str | TensorType]] = {},
    labels: Sequence[str] = (),
    limits: Mapping[str, int] | Sequence[str] | Limits = ...,
) -> Page:
    """Show a model as a page of HTML, or what differs between two."""

__all__ = [
    "FormatError",
    "HybridExecutor",
    "MissingDependency",
    "OptionError",
    "Report",
    "Runnable",
    "SerdeError",
    "UnsupportedModelError",
    "__version__",
    "batch",
    "bisect",
    "check",
    "compile",
    "convert",
    "diff",
    "export_model",
    "exports",
    "from_relay",
    "import_model",
    "import_to_gluon",
    "imports",
    "register_kernel",
    "register_runner",
    "relay",
    "serving",
    "target",
    "to_relay",
    "view",
]
