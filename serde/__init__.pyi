"""Moves trained models between formats, through Relay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any as AnyValue, Literal, TypeAlias, TypedDict, overload

import coremltools  # type: ignore[import-not-found,import-untyped,unused-ignore]
import mxnet  # type: ignore[import-not-found,import-untyped,unused-ignore]
import mxnet.gluon  # type: ignore[import-not-found,import-untyped,unused-ignore]
import numpy as np
import onnx  # type: ignore[import-not-found,import-untyped,unused-ignore]
from typing_extensions import Unpack

from serde import relay as relay, target as target
from serde._version import __version__ as __version__
from serde.bridge.input_types import Image, Range
from serde.checking.bisection import Bisection
from serde.checking.difference import ModelDiff
from serde.checking.tolerance import Tolerance
from serde.conversion.signature import FormatName
from serde.core.limits import Limits
from serde.core.report import Report as Report
from serde.core.weights import Array
from serde.engine.foreign import register_kernel as register_kernel
from serde.errors import (
    FormatError as FormatError,
    MissingDependency as MissingDependency,
    OptionError as OptionError,
    SerdeError as SerdeError,
    UnsupportedModelError as UnsupportedModelError,
)
from serde.fleet import serving as serving
from serde.fleet.batching.records import Outcome
from serde.fleet.batching.report import BatchReport
from serde.mxnet.live import Params
from serde.relax.runnable import Runnable as Runnable
from serde.relay.ir.dims import Any, SymDim
from serde.relay.ir.model import RelayModel
from serde.relay.ir.module import IRModule
from serde.relay.ir.types import TensorType
from serde.target.hybrid import HybridExecutor as HybridExecutor
from serde.target.runners import register_runner as register_runner
from serde.viewing.page import Page
from serde.walk.user_converters import exports as exports, imports as imports

_Path: TypeAlias = str | PathLike[str]
_Sources: TypeAlias = (
    str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]]
)
_InputShapes: TypeAlias = (
    Mapping[str, Sequence[int | str | SymDim | Any | None]]
    | Sequence[int | str | SymDim | Any | None]
)
_InputDtypes: TypeAlias = (
    Mapping[str, str | np.dtype[AnyValue] | type[AnyValue]]
    | str
    | np.dtype[AnyValue]
    | type[AnyValue]
)
_Converters: TypeAlias = (
    Mapping[str, Callable[..., AnyValue]]
    | Sequence[str | PathLike[str] | Callable[..., AnyValue]]
    | str
    | PathLike[str]
)
_ResultTypes: TypeAlias = Mapping[str, str | TensorType | Sequence[str | TensorType]]
_Limits: TypeAlias = Mapping[str, int] | Sequence[str] | Limits
_Images: TypeAlias = Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str]
_OutputImages: TypeAlias = Mapping[str, Image | str] | Sequence[str]
_ClassLabels: TypeAlias = Sequence[str | int] | PathLike[str] | None
_Mode: TypeAlias = Literal["classifier", "regressor"] | None
_EnumeratedShapes: TypeAlias = Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]]
_Quantized: TypeAlias = Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"]
_Int8: TypeAlias = bool | Literal["static", "dynamic", "weights"]
_CalibrationMethod: TypeAlias = Literal["minmax", "entropy", "percentile"]
_ActivationType: TypeAlias = Literal["int8", "uint8", "int16", "uint16"] | None

class _Batch(TypedDict, total=False):
    source_format: str | None
    check: bool | int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: str | PathLike[str] | None
    yardstick: bool
    workers: int | None
    scheduler: AnyValue
    time_limit: float | None
    memory_limit: int | None
    name_limit: int
    manifest_code: bool
    manifest_targets: bool
    sandbox: bool | None
    retries: int
    ledger: str | PathLike[str] | None
    retry_failed: bool
    overwrite: bool
    scratch: str | PathLike[str] | None
    storage_options: Mapping[str, AnyValue] | None
    progress: Callable[[Outcome], object] | None

class _Reading(TypedDict, total=False):
    input_shapes: _InputShapes
    """Shape of each input: integers, names of dynamic dimensions, "?" (also -1 or None) for one
    without a name; a bare shape if there is one input (default {})."""
    input_dtypes: _InputDtypes
    """dtype of each input that is not what the format says or implies; a bare dtype if there is one
    input (default {})."""
    fix_inputs: Mapping[str, AnyValue]
    """Values of inputs, which are no inputs then: a number (for all elements), an array, or the path
    of a .npy file. Branches that they decide against are left (default {})."""
    allow: Iterable[str]
    """Names of lossy steps that may be taken (default frozenset())."""
    converters: _Converters
    """Functions of yours that convert operators: by name, decorated by serde.imports or
    serde.exports, or in files of these (default ())."""
    keep_unknown: bool
    """Keep operators that nobody can convert as serde.foreign (default False)."""
    result_types: _ResultTypes
    """Types of what such operators give, by the node's name: "float32[1,10]", of several results a
    list (default {})."""
    labels: Sequence[str]
    """Class labels, in the order of the scores, of a model that says none itself (default ())."""
    limits: _Limits
    """What the conversion may take beyond what the source holds, by the names that
    :class:serde.core.limits.Limits has: {"nodes": 1_000_000} (default Limits(nodes=10000,
    elements=134217728, constants=33554432, terms=64, turns=4096, depth=32, values=67108864))."""

class _ReadingCoreml(TypedDict, total=False):
    function: str | None
    """Which function of an ML Program to read; the one it runs by default if left out (default
    None)."""
    pipeline_model: str | None
    """Which model of a pipeline to read alone, by its name or its number from 0; all of them, one
    after the other, if left out (default None)."""
    optional_inputs: Literal["inputs", "defaults"]
    """Whether the thresholds of a pipeline that may be left out are inputs of what is read, or have
    their defaults always (default 'inputs')."""

class _ReadingMxnet(TypedDict, total=False):
    epoch: int | None
    """Which prefix-NNNN.params to read; the newest if left out (default None)."""
    widen_weights: bool | None
    """Compute weights of 16 bits as float32; by default where inputs or other weights are float32,
    as MXNet does when it loads them into such a net (default None)."""
    keep_labels: bool
    """Keep inputs that only training needs, such as labels, as inputs that nothing uses; otherwise
    they are left out (default False)."""

class _ReadingNnef(TypedDict, total=False):
    custom_convert_map: Mapping[str, Callable[..., AnyValue]]
    """What fragments become, by name, those of the standard included: functions of a list of Relay
    expressions and a dict of further arguments, which return one expression or several.
    Fragments of the model's own are not expanded then (default {})."""

class _ReadingOnnx(TypedDict, total=False):
    source_opset: int | None
    """Version of the default operator set to take instead of what the model names (default None)."""
    keep_initializers_as_inputs: bool
    """Let inputs that have an initializer stay inputs, without its value; otherwise they are weights
    (default False)."""

class _ReadingRelay(TypedDict, total=False):
    lift_constants: int | None
    """Constants of more bytes than this become weights; None keeps them all (default 256)."""

class _ReadingTflite(TypedDict, total=False):
    signature: str | None
    """Which signature to read; the first subgraph, under the names of its tensors or of the only
    signature that runs it, if left out (default None)."""
    read_quantized: Literal["exact", "qdq"]
    """Operators on codes by the arithmetic of LiteRT's kernels ("exact"), or on numbers between what
    quantises them ("qdq"), which other formats have as well (default 'exact')."""

class _ReadingTorch(TypedDict, total=False):
    example_inputs: AnyValue
    """Arguments with which a live module is exported or traced (default None)."""
    dynamic_shapes: AnyValue
    """Which of their dimensions may have any length, as torch.export takes it (default None)."""
    default_dtype: str
    """The dtype of numbers with a fraction, and of inputs of TorchScript that declare none (default
    'float32')."""

class _Passes(TypedDict, total=False):
    inputs: Sequence[str]
    """Values or nodes of the source that are the inputs of the part to convert; those of the model
    that the outputs depend on, if left out (default ())."""
    outputs: Sequence[str]
    """Values or nodes of the source that are the outputs of the part to convert; those of the model,
    if left out. name:1 is the second result of a node (default ())."""
    rename_inputs: Mapping[str, str]
    """Other names of inputs by their names; options of a target use the new ones (default {})."""
    rename_outputs: Mapping[str, str]
    """Other names of outputs by their names, likewise (default {})."""

class _Passes2(TypedDict, total=False):
    simplify: bool
    """Make the model smaller and faster where its results stay the same: merge equal nodes, drop
    those without effect, fold batch normalisations. Without it, only what targets need is
    done: functions inlined, shapes and constants evaluated, operators that only matter in
    training dropped (default True)."""
    keep_batch_norm: bool
    """Leave batch normalisations as they are; otherwise one that follows a convolution or dense
    layer becomes part of its weights (default False)."""
    float16: bool
    """Compute in float16 (default False)."""
    keep_io_types: bool
    """With float16, leave the dtypes of inputs and outputs as they are (default False)."""
    op_block_list: Iterable[str]
    """With float16, Relay operators or node names that stay float32, besides the default list
    (default frozenset())."""

class _Writing(TypedDict, total=False):
    custom_ops: Iterable[str]
    """Operators of other frameworks that Relay does not know, by name, which are written as custom
    operators of the target (default frozenset())."""

class _WritingCoreml(TypedDict, total=False):
    minimum_deployment_target: str
    """Oldest system that is to run the model: iOS15 to iOS26 for ML Programs, iOS13 or iOS14 for
    NeuralNetworks (default 'iOS15')."""
    compute_precision: Literal["float16", "float32"] | None
    """What a program computes in, float16 if left out; its inputs and outputs stay as they are. Of a
    NeuralNetwork what its weights are stored in, float32 if left out (default None)."""
    float32_ops: Iterable[str]
    """What a program in float16 computes in float32 besides what leaves the range or the precision
    of float16: operators of Relay, names of nodes, or the groups norms, reductions and
    resizing (default frozenset())."""
    images: _Images
    """Inputs that are images, by name: a colour layout (RGB, BGR, GRAYSCALE, from iOS16 on
    GRAYSCALE_FLOAT16), or a mapping of color_layout, scale and bias (one number, or one for
    each channel in the order of the layout; also red_bias and the like). The network gets
    scale * pixels + bias. A list of names stands for RGB images as they are (default {})."""
    output_images: _OutputImages
    """Outputs that are images, by name, with a colour layout (default {})."""
    class_labels: _ClassLabels
    """Class labels of a classifier in the order of its scores, text or integers, or a file with one
    on each line; those of the source if left out (default None)."""
    mode: _Mode
    """classifier, or regressor for a network that gives numbers. Without it, a model with class
    labels is a classifier (default None)."""
    predicted_feature_name: str | None
    """What the output with the label of the best class is called; that with all scores has _probs
    behind it; classLabel if left out (default None)."""
    predicted_probabilities_output: str | None
    """The output that holds the scores of the classes, where there are several outputs (default
    None)."""
    ranges: Mapping[str, Range | Sequence[int]]
    """Lengths that a dynamic dimension may have, by its name: (lower, upper), or (lower, upper,
    default); 1 to 1024 if left out (default {})."""
    enumerated_shapes: _EnumeratedShapes
    """Shapes that an input may have, by name; the first is the default (default {})."""
    states: Mapping[str, str]
    """Outputs that are later values of inputs, by input, which Core ML keeps as states from iOS18
    on; those of the source if left out. They are float16 (default {})."""
    author: str | None
    """Who made the model (default None)."""
    license: str | None
    """Under which licence (default None)."""
    model_version: str | None
    """Version of the model (default None)."""
    short_description: str | None
    """What it does; what the source says of it if left out (default None)."""
    descriptions: Mapping[str, str]
    """What inputs and outputs are, by name (default {})."""
    metadata: Mapping[str, str]
    """Further facts that the model is to carry, texts by name (default {})."""

class _WritingMxnet(TypedDict, total=False):
    params_epoch: int
    """The number in the name prefix-NNNN.params (default 0)."""

class _WritingNnef(TypedDict, total=False):
    nnef_fragments: bool
    """Keep functions of the model, and what it repeats, as fragments of its own (default False)."""

class _WritingOnnx(TypedDict, total=False):
    opset: int | Literal["auto"]
    """Version of the default operator set, from 11 on; "auto" is the lowest from 17 on that can say
    the whole model (default 17)."""
    intermediate_shapes: bool
    """Note the types of all intermediate values (default False)."""
    quantized: _Quantized
    """Quantised operators step by step in integers ("exact"), or on floats between QuantizeLinear
    and DequantizeLinear ("qdq"), or besides that with convolutions and products as
    QLinearConv and QLinearMatMul ("qlinear"); or on floats in the form that "onnxruntime" or
    "tensorrt" fuses. All but the first round halves to even and are to be allowed as
    quantised-as-qdq (default 'exact')."""
    save_as_external_data: bool
    """Write weights to <name>.onnx.data whatever their size (default False)."""
    external_data_threshold: int | None
    """Write weights there once they exceed this many bytes together; the limit of protobuf if left
    out (default None)."""
    link_weights: bool
    """Refer to weights where they lie in the files of the source, instead of writing them; the model
    must be written to the folder of these files or one above. Only weights that the
    conversion makes anew are written. The model notes a fingerprint of the files, so that
    serde finds out if they change later (default False)."""
    link_digest: Literal["sampled", "full"]
    """With link_weights, a fingerprint of pieces of the files alone ("sampled"), or besides that
    their SHA-1 ("full"), for which all of them is read (default 'sampled')."""
    local_functions: bool
    """Write global, composite and fused functions as local functions, from opset 15 on; otherwise
    their nodes go where they are called (default False)."""

class _WritingRelax(TypedDict, total=False):
    freeze_vars: bool
    """Put the weights into the module as constants; they are parameters behind the inputs otherwise
    (default False)."""

class _WritingRelay(TypedDict, total=False):
    strict: bool
    """Whether the text is legal for TVM 0.18 rather than serde's dialect (default False)."""

class _WritingTflite(TypedDict, total=False):
    write_quantized: Literal["int8", "exact"]
    """Operators between what quantises numbers on int8, within a step ("int8"), or on these numbers
    ("exact") (default 'int8')."""

class _WritingTflite2(TypedDict, total=False):
    images: _Images
    """Inputs that are images, by name, as for Core ML: a colour layout (RGB or GRAYSCALE), or a
    mapping of color_layout, scale and bias. They get their channels last, and TFLite Metadata
    tell that apps are to give scale * pixels + bias (default {})."""
    class_labels: _ClassLabels
    """Class labels in the order of the scores, or a file with one on each line; those of the source
    if left out. They lie in the file, as TFLite Metadata tell (default None)."""

class _WritingTorch(TypedDict, total=False):
    control_flow: Literal["python", "hop"]
    """Conditionals and loops as statements of Python, which torch.jit.script takes, or as torch.cond
    and while_loop ("hop"), which torch.export takes (default 'python')."""
    training: bool
    """Keep what only matters in training: dropout, and batch normalisations as layers of their own.
    Without it the module is smaller and only predicts (default True)."""

class _WritingTvm(TypedDict, total=False):
    freeze_vars: bool
    """Put the weights into the module as constants; they are parameters behind the inputs otherwise
    (default False)."""

class _WritingTvm2(TypedDict, total=False):
    tvm_target: str | Mapping[str, AnyValue]
    """What the library is compiled for: a kind or tag of TVM, or a mapping such as {"kind": "llvm",
    "mcpu": "skylake"}, also as text in JSON (default 'llvm')."""
    cc: str | None
    """What links the library: a C++ compiler for the target; one that TVM finds if left out (default
    None)."""

class _Bisect(TypedDict, total=False):
    params: AnyValue
    target_format: str | None
    dims: Mapping[str, int] | None
    check_data: AnyValue
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _ReadingRelax(TypedDict, total=False):
    function: str | None
    """The function to read, if it is not called main and there are several (default None)."""
    custom_convert_map: Mapping[str, Callable[..., AnyValue]]
    """What operators become, by name (relax.nn.relu): functions of a list of Relay expressions and a
    dict of attributes, which return one expression or several (default {})."""

class _ReadingTorch2(TypedDict, total=False):
    custom_convert_map: Mapping[str, Callable[..., AnyValue]]
    """What operators become, by name: functions of a list of Relay expressions (and of Python's
    values) and a list of their dtypes, which return one expression or several (default {})."""

class _Check(TypedDict, total=False):
    params: AnyValue
    target_format: str | None
    runs: int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: AnyValue
    check_images: Mapping[str, str] | None
    float16: bool
    yardstick: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _Compile(TypedDict, total=False):
    target: str | Mapping[str, AnyValue]
    cc: str | None
    report: Report | None

class _Convert(TypedDict, total=False):
    params: AnyValue
    source_format: str | None
    check: bool | int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: AnyValue
    yardstick: bool
    tensor_mapping: str | PathLike[str] | None
    overwrite: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _Passes3(TypedDict, total=False):
    int8: _Int8
    """Quantise to integers of 8 bits: "static", activations too, by ranges measured on calibration;
    "dynamic", activations by ranges found at run time; "weights" alone; or True for what the
    target's tool is mostly used for (default False)."""
    int4: bool
    """Quantise weights to 4 bits (default False)."""
    palettize: int | None
    """Bits of an index into a table of values, which each weight becomes: 1, 2, 3, 4, 6 or 8
    (default None)."""
    sparsity: float | None
    """Share of each weight's elements, the smallest, that become zero; from 0 to 1 (default None)."""
    calibration: AnyValue
    """Inputs on which activations are measured and accuracy is told: a path, an array, a mapping of
    arrays by input, or a list of these (default None)."""
    calibration_method: _CalibrationMethod
    """How a range follows from what was measured (default 'minmax')."""
    activation_type: _ActivationType
    """Integers of activations; the tool's own choice if left out (default None)."""
    weight_type: Literal["int8", "uint8"] | None
    """Integers of weights, likewise (default None)."""
    per_channel: bool
    """Give each output channel of a weight a scale of its own (default True)."""
    symmetric: bool
    """Keep the zero point of activations at zero, as TensorRT wants it (default False)."""
    reduce_range: bool
    """Use 7 of the 8 bits of weights, for processors whose sums of products saturate (default
    False)."""
    int8_exclude: Sequence[str]
    """Nodes of the target that stay as they are (default ())."""
    min_agreement: float | None
    """Least share of samples whose best class stays the same, for outputs that are scores of
    classes; with less, nothing is written (default None)."""
    min_cosine: float | None
    """Least cosine between the source's outputs and the smaller model's, likewise (default None)."""

class _Diff(TypedDict, total=False):
    left_format: str | None
    right_format: str | None
    weights: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _ExportModel(TypedDict, total=False):
    overwrite: bool
    report: Report | None

class _ExportModel2(TypedDict, total=False):
    path: str | PathLike[str] | None

class _FromRelay(TypedDict, total=False):
    overwrite: bool
    report: Report | None

class _Passes4(TypedDict, total=False):
    allow: Iterable[str]
    """Names of lossy steps that may be taken (default frozenset())."""

class _Writing2(TypedDict, total=False):
    converters: _Converters
    """Functions of yours that convert operators: by name, decorated by serde.imports or
    serde.exports, or in files of these (default ())."""
    limits: _Limits
    """What the conversion may take beyond what the source holds, by the names that
    :class:serde.core.limits.Limits has: {"nodes": 1_000_000} (default Limits(nodes=10000,
    elements=134217728, constants=33554432, terms=64, turns=4096, depth=32, values=67108864))."""

class _FromRelay2(TypedDict, total=False):
    path: str | PathLike[str] | None

class _ImportModel(TypedDict, total=False):
    report: Report | None

class _ImportToGluon(TypedDict, total=False):
    ctx: AnyValue
    report: Report | None

class _ToRelay(TypedDict, total=False):
    report: Report | None

class _View(TypedDict, total=False):
    path: str | PathLike[str] | None
    params: AnyValue
    target_format: str | None
    weights: bool
    seconds: float
    values: bool
    dims: Mapping[str, int] | None
    check_data: AnyValue
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _ReadingSet1(
    _Reading,
    _ReadingCoreml,
    _ReadingMxnet,
    _ReadingNnef,
    _ReadingOnnx,
    _ReadingRelay,
    _ReadingTflite,
    _ReadingTorch,
    total=False,
): ...
class _PassesSet2(_Passes, _Passes2, total=False): ...
class _WritingSet3(_Writing, _WritingCoreml, total=False): ...
class _OptionsSet4(_Batch, _ReadingSet1, _PassesSet2, _WritingSet3, total=False): ...
class _WritingSet5(_Writing, _WritingMxnet, total=False): ...
class _OptionsSet6(_Batch, _ReadingSet1, _PassesSet2, _WritingSet5, total=False): ...
class _WritingSet7(_Writing, _WritingNnef, total=False): ...
class _OptionsSet8(_Batch, _ReadingSet1, _PassesSet2, _WritingSet7, total=False): ...
class _WritingSet9(_Writing, _WritingOnnx, total=False): ...
class _OptionsSet10(_Batch, _ReadingSet1, _PassesSet2, _WritingSet9, total=False): ...
class _WritingSet11(_Writing, _WritingRelax, total=False): ...
class _OptionsSet12(_Batch, _ReadingSet1, _PassesSet2, _WritingSet11, total=False): ...
class _WritingSet13(_Writing, _WritingRelay, total=False): ...
class _OptionsSet14(_Batch, _ReadingSet1, _PassesSet2, _WritingSet13, total=False): ...
class _WritingSet15(_Writing, _WritingTflite, _WritingTflite2, total=False): ...
class _OptionsSet16(_Batch, _ReadingSet1, _PassesSet2, _WritingSet15, total=False): ...
class _WritingSet17(_Writing, _WritingTorch, total=False): ...
class _OptionsSet18(_Batch, _ReadingSet1, _PassesSet2, _WritingSet17, total=False): ...
class _WritingSet19(_Writing, _WritingTvm, _WritingTvm2, total=False): ...
class _OptionsSet20(_Batch, _ReadingSet1, _PassesSet2, _WritingSet19, total=False): ...
class _WritingSet21(
    _Writing,
    _WritingCoreml,
    _WritingMxnet,
    _WritingNnef,
    _WritingOnnx,
    _WritingRelax,
    _WritingRelay,
    _WritingTflite,
    _WritingTorch,
    _WritingTvm2,
    total=False,
): ...
class _OptionsSet22(_Batch, _ReadingSet1, _PassesSet2, _WritingSet21, total=False): ...
class _OptionsSet23(_Batch, _ReadingSet1, _PassesSet2, total=False): ...
class _ReadingSet24(_Reading, _ReadingCoreml, total=False): ...
class _OptionsSet25(_Bisect, _ReadingSet24, total=False): ...
class _ReadingSet26(_Reading, _ReadingMxnet, total=False): ...
class _OptionsSet27(_Bisect, _ReadingSet26, total=False): ...
class _ReadingSet28(_Reading, _ReadingNnef, total=False): ...
class _OptionsSet29(_Bisect, _ReadingSet28, total=False): ...
class _ReadingSet30(_Reading, _ReadingOnnx, total=False): ...
class _OptionsSet31(_Bisect, _ReadingSet30, total=False): ...
class _ReadingSet32(_Reading, _ReadingRelax, total=False): ...
class _OptionsSet33(_Bisect, _ReadingSet32, total=False): ...
class _ReadingSet34(_Reading, _ReadingRelay, total=False): ...
class _OptionsSet35(_Bisect, _ReadingSet34, total=False): ...
class _ReadingSet36(_Reading, _ReadingTflite, total=False): ...
class _OptionsSet37(_Bisect, _ReadingSet36, total=False): ...
class _ReadingSet38(_Reading, _ReadingTorch, _ReadingTorch2, total=False): ...
class _OptionsSet39(_Bisect, _ReadingSet38, total=False): ...
class _OptionsSet40(_Bisect, _ReadingSet1, total=False): ...
class _OptionsSet41(_Bisect, _Reading, total=False): ...
class _OptionsSet42(_Check, _ReadingSet24, total=False): ...
class _OptionsSet43(_Check, _ReadingSet26, total=False): ...
class _OptionsSet44(_Check, _ReadingSet28, total=False): ...
class _OptionsSet45(_Check, _ReadingSet30, total=False): ...
class _OptionsSet46(_Check, _ReadingSet32, total=False): ...
class _OptionsSet47(_Check, _ReadingSet34, total=False): ...
class _OptionsSet48(_Check, _ReadingSet36, total=False): ...
class _OptionsSet49(_Check, _ReadingSet38, total=False): ...
class _OptionsSet50(_Check, _ReadingSet1, total=False): ...
class _OptionsSet51(_Check, _Reading, total=False): ...
class _OptionsSet52(_Compile, _ReadingSet24, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet53(_Compile, _ReadingSet26, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet54(_Compile, _ReadingSet28, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet55(_Compile, _ReadingSet30, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet56(_Compile, _ReadingSet32, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet57(_Compile, _ReadingSet34, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet58(_Compile, _ReadingSet36, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet59(_Compile, _ReadingSet38, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet60(_Compile, _ReadingSet1, _PassesSet2, _WritingSet11, total=False): ...
class _OptionsSet61(_Compile, _Reading, _PassesSet2, _WritingSet11, total=False): ...
class _PassesSet62(_Passes, _Passes2, _Passes3, total=False): ...
class _OptionsSet63(_Convert, _ReadingSet1, _PassesSet62, _WritingSet3, total=False): ...
class _OptionsSet64(_Convert, _ReadingSet1, _PassesSet62, _WritingSet5, total=False): ...
class _OptionsSet65(_Convert, _ReadingSet1, _PassesSet62, _WritingSet7, total=False): ...
class _OptionsSet66(_Convert, _ReadingSet1, _PassesSet62, _WritingSet9, total=False): ...
class _OptionsSet67(_Convert, _ReadingSet1, _PassesSet62, _WritingSet11, total=False): ...
class _OptionsSet68(_Convert, _ReadingSet1, _PassesSet62, _WritingSet13, total=False): ...
class _OptionsSet69(_Convert, _ReadingSet1, _PassesSet62, _WritingSet15, total=False): ...
class _OptionsSet70(_Convert, _ReadingSet1, _PassesSet62, _WritingSet17, total=False): ...
class _OptionsSet71(_Convert, _ReadingSet1, _PassesSet62, _WritingSet19, total=False): ...
class _OptionsSet72(_Convert, _ReadingSet1, _PassesSet62, _WritingSet21, total=False): ...
class _OptionsSet73(_Convert, _ReadingSet1, _PassesSet62, total=False): ...
class _OptionsSet74(_Diff, _ReadingSet1, total=False): ...
class _OptionsSet75(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet3, total=False): ...
class _OptionsSet76(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet5, total=False): ...
class _OptionsSet77(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet7, total=False): ...
class _OptionsSet78(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet9, total=False): ...
class _OptionsSet79(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet11, total=False): ...
class _OptionsSet80(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet13, total=False): ...
class _OptionsSet81(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet15, total=False): ...
class _OptionsSet82(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet17, total=False): ...
class _OptionsSet83(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet19, total=False): ...
class _OptionsSet84(_ExportModel, _ReadingSet1, _PassesSet62, _WritingSet21, total=False): ...
class _OptionsSet85(_ExportModel2, _ExportModel, _ReadingSet1, _PassesSet62, total=False): ...
class _PassesSet86(_Passes, _Passes2, _Passes4, total=False): ...
class _WritingSet87(_Writing2, _Writing, _WritingCoreml, total=False): ...
class _OptionsSet88(_FromRelay, _PassesSet86, _WritingSet87, total=False): ...
class _WritingSet89(_Writing2, _Writing, _WritingMxnet, total=False): ...
class _OptionsSet90(_FromRelay, _PassesSet86, _WritingSet89, total=False): ...
class _WritingSet91(_Writing2, _Writing, _WritingNnef, total=False): ...
class _OptionsSet92(_FromRelay, _PassesSet86, _WritingSet91, total=False): ...
class _WritingSet93(_Writing2, _Writing, _WritingOnnx, total=False): ...
class _OptionsSet94(_FromRelay, _PassesSet86, _WritingSet93, total=False): ...
class _WritingSet95(_Writing2, _Writing, _WritingRelax, total=False): ...
class _OptionsSet96(_FromRelay, _PassesSet86, _WritingSet95, total=False): ...
class _WritingSet97(_Writing2, _Writing, _WritingRelay, total=False): ...
class _OptionsSet98(_FromRelay, _PassesSet86, _WritingSet97, total=False): ...
class _WritingSet99(_Writing2, _Writing, _WritingTflite, _WritingTflite2, total=False): ...
class _OptionsSet100(_FromRelay, _PassesSet86, _WritingSet99, total=False): ...
class _WritingSet101(_Writing2, _Writing, _WritingTorch, total=False): ...
class _OptionsSet102(_FromRelay, _PassesSet86, _WritingSet101, total=False): ...
class _WritingSet103(_Writing2, _Writing, _WritingTvm, _WritingTvm2, total=False): ...
class _OptionsSet104(_FromRelay, _PassesSet86, _WritingSet103, total=False): ...
class _WritingSet105(
    _Writing2,
    _Writing,
    _WritingCoreml,
    _WritingMxnet,
    _WritingNnef,
    _WritingOnnx,
    _WritingRelax,
    _WritingRelay,
    _WritingTflite,
    _WritingTorch,
    _WritingTvm2,
    total=False,
): ...
class _OptionsSet106(_FromRelay, _PassesSet86, _WritingSet105, total=False): ...
class _OptionsSet107(_FromRelay2, _FromRelay, _PassesSet86, total=False): ...
class _OptionsSet108(_ImportModel, _ReadingSet24, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet109(_ImportModel, _ReadingSet26, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet110(_ImportModel, _ReadingSet28, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet111(_ImportModel, _ReadingSet30, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet112(_ImportModel, _ReadingSet32, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet113(_ImportModel, _ReadingSet34, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet114(_ImportModel, _ReadingSet36, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet115(_ImportModel, _ReadingSet38, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet116(_ImportModel, _ReadingSet1, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet117(_ImportModel, _Reading, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet118(_ImportToGluon, _ReadingSet24, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet119(_ImportToGluon, _ReadingSet26, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet120(_ImportToGluon, _ReadingSet28, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet121(_ImportToGluon, _ReadingSet30, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet122(_ImportToGluon, _ReadingSet32, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet123(_ImportToGluon, _ReadingSet34, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet124(_ImportToGluon, _ReadingSet36, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet125(_ImportToGluon, _ReadingSet38, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet126(_ImportToGluon, _ReadingSet1, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet127(_ImportToGluon, _Reading, _PassesSet2, _WritingSet5, total=False): ...
class _OptionsSet128(_ToRelay, _ReadingSet24, _Passes, total=False): ...
class _OptionsSet129(_ToRelay, _ReadingSet26, _Passes, total=False): ...
class _OptionsSet130(_ToRelay, _ReadingSet28, _Passes, total=False): ...
class _OptionsSet131(_ToRelay, _ReadingSet30, _Passes, total=False): ...
class _OptionsSet132(_ToRelay, _ReadingSet32, _Passes, total=False): ...
class _OptionsSet133(_ToRelay, _ReadingSet34, _Passes, total=False): ...
class _OptionsSet134(_ToRelay, _ReadingSet36, _Passes, total=False): ...
class _OptionsSet135(_ToRelay, _ReadingSet38, _Passes, total=False): ...
class _OptionsSet136(_ToRelay, _ReadingSet1, _Passes, total=False): ...
class _OptionsSet137(_ToRelay, _Reading, _Passes, total=False): ...
class _OptionsSet138(_View, _ReadingSet24, total=False): ...
class _OptionsSet139(_View, _ReadingSet26, total=False): ...
class _OptionsSet140(_View, _ReadingSet28, total=False): ...
class _OptionsSet141(_View, _ReadingSet30, total=False): ...
class _OptionsSet142(_View, _ReadingSet32, total=False): ...
class _OptionsSet143(_View, _ReadingSet34, total=False): ...
class _OptionsSet144(_View, _ReadingSet36, total=False): ...
class _OptionsSet145(_View, _ReadingSet38, total=False): ...
class _OptionsSet146(_View, _ReadingSet1, total=False): ...
class _OptionsSet147(_View, _Reading, total=False): ...

@overload
def batch(
    sources: _Sources, *, to: Literal["coreml"], out: _Path, **options: Unpack[_OptionsSet4]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["mxnet"], out: _Path, **options: Unpack[_OptionsSet6]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["nnef"], out: _Path, **options: Unpack[_OptionsSet8]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["onnx"], out: _Path, **options: Unpack[_OptionsSet10]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["relax"], out: _Path, **options: Unpack[_OptionsSet12]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["relay"], out: _Path, **options: Unpack[_OptionsSet14]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["tflite"], out: _Path, **options: Unpack[_OptionsSet16]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["torch"], out: _Path, **options: Unpack[_OptionsSet18]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: Literal["tvm"], out: _Path, **options: Unpack[_OptionsSet20]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: None, out: _Path, **options: Unpack[_OptionsSet22]
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
        options: Options of the sources, of the passes and of the target, for all models; in
            ``input_shapes``, ``"bert*:ids"`` is an input of those that are called so.

    Returns:
        What became of the models; iterating over it gives an outcome for each.

    Raises:
        FormatError: The ledger is another file.
        MissingDependency: A package is not installed.
        OptionError: An option is unknown or cannot be used, nothing can be written to `out`, or
            another run has the ledger open. What is wrong with a model is never raised.

    Example:
        >>> report = serde.batch(["net.onnx", "other.onnx"], to="relay", out="converted")
        >>> [outcome.status for outcome in report]
        ['done', 'done']"""

@overload
def batch(
    sources: _Sources,
    *,
    to: str,
    out: _Path,
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
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: str, out: _Path, **options: Unpack[_OptionsSet23]
) -> BatchReport: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["coreml"],
    **options: Unpack[_OptionsSet25],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["mxnet"],
    **options: Unpack[_OptionsSet27],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["nnef"],
    **options: Unpack[_OptionsSet29],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["onnx"],
    **options: Unpack[_OptionsSet31],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["relax"],
    **options: Unpack[_OptionsSet33],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["relay"],
    **options: Unpack[_OptionsSet35],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["tflite"],
    **options: Unpack[_OptionsSet37],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["torch"],
    **options: Unpack[_OptionsSet39],
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue, target: _Path, *, source_format: None = None, **options: Unpack[_OptionsSet40]
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted.

    Example:
        >>> found = serde.bisect("net.onnx", "other.onnx")
        >>> [value.name for value in found.values if value.suspect]
        ['h']"""

@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    params: AnyValue = None,
    source_format: FormatName,
    target_format: str | None = None,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue,
    target: _Path,
    *,
    params: AnyValue = None,
    source_format: str | None = None,
    target_format: FormatName,
    dims: Mapping[str, int] | None = None,
    check_data: AnyValue = None,
    storage_options: Mapping[str, AnyValue] | None = None,
    report: Report | None = None,
    **options: AnyValue,
) -> Bisection: ...
@overload
def bisect(
    source: AnyValue, target: _Path, *, source_format: str, **options: Unpack[_OptionsSet41]
) -> Bisection: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["coreml"],
    **options: Unpack[_OptionsSet42],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["mxnet"],
    **options: Unpack[_OptionsSet43],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["nnef"],
    **options: Unpack[_OptionsSet44],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["onnx"],
    **options: Unpack[_OptionsSet45],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["relax"],
    **options: Unpack[_OptionsSet46],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["relay"],
    **options: Unpack[_OptionsSet47],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["tflite"],
    **options: Unpack[_OptionsSet48],
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
    *,
    source_format: Literal["torch"],
    **options: Unpack[_OptionsSet49],
) -> Report: ...
@overload
def check(
    source: AnyValue, target: _Path, *, source_format: None = None, **options: Unpack[_OptionsSet50]
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of the source cannot be converted.

    Example:
        >>> serde.check("net.onnx", "other.onnx").passed
        False"""

@overload
def check(
    source: AnyValue,
    target: _Path,
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
) -> Report: ...
@overload
def check(
    source: AnyValue,
    target: _Path,
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
) -> Report: ...
@overload
def check(
    source: AnyValue, target: _Path, *, source_format: str, **options: Unpack[_OptionsSet51]
) -> Report: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    **options: Unpack[_OptionsSet52],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    **options: Unpack[_OptionsSet53],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    **options: Unpack[_OptionsSet54],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    **options: Unpack[_OptionsSet55],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    **options: Unpack[_OptionsSet56],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    **options: Unpack[_OptionsSet57],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    **options: Unpack[_OptionsSet58],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    **options: Unpack[_OptionsSet59],
) -> Runnable: ...
@overload
def compile(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    **options: Unpack[_OptionsSet60],
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: TVM is not installed, or as a release that is not known.
        OptionError: An option is unknown or missing, or TVM knows no such target.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> net = serde.compile("net.onnx", target="llvm")
        >>> net(np.float32([[1, -2, 3]]))
        [array([[1., 0., 3.]], dtype=float32)]"""

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
) -> Runnable: ...
@overload
def compile(
    source: AnyValue, params: AnyValue = None, *, format: str, **options: Unpack[_OptionsSet61]
) -> Runnable: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["coreml"],
    **options: Unpack[_OptionsSet63],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["mxnet"],
    **options: Unpack[_OptionsSet64],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["nnef"],
    **options: Unpack[_OptionsSet65],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["onnx"],
    **options: Unpack[_OptionsSet66],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["relax"],
    **options: Unpack[_OptionsSet67],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["relay"],
    **options: Unpack[_OptionsSet68],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["tflite"],
    **options: Unpack[_OptionsSet69],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["torch"],
    **options: Unpack[_OptionsSet70],
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
    *,
    target_format: Literal["tvm"],
    **options: Unpack[_OptionsSet71],
) -> Report: ...
@overload
def convert(
    source: AnyValue, target: _Path, *, target_format: None = None, **options: Unpack[_OptionsSet72]
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown, missing or cannot be used.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> report = serde.convert("net.onnx", "net.nnef.tgz", check=True)
        >>> report.facts["path"], report.passed
        ('net.nnef.tgz', True)"""

@overload
def convert(
    source: AnyValue,
    target: _Path,
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
) -> Report: ...
@overload
def convert(
    source: AnyValue,
    target: _Path,
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
) -> Report: ...
@overload
def convert(
    source: AnyValue, target: _Path, *, target_format: str, **options: Unpack[_OptionsSet73]
) -> Report: ...
@overload
def diff(left: AnyValue, right: AnyValue, **options: Unpack[_OptionsSet74]) -> ModelDiff:
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        StoreError: A store does not answer, refuses, or holds no such object.
        UnsupportedModelError: Some nodes of a model cannot be converted; all of them are listed.

    Example:
        >>> [weight.name for weight in serde.diff("net.onnx", "other.onnx").weights]
        ['w']"""

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
) -> ModelDiff: ...
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
) -> ModelDiff: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    path: None = None,
    **options: Unpack[_OptionsSet75],
) -> coremltools.models.MLModel: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    path: _Path,
    **options: Unpack[_OptionsSet75],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    path: None = None,
    **options: Unpack[_OptionsSet76],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    path: _Path,
    **options: Unpack[_OptionsSet76],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    path: None = None,
    **options: Unpack[_OptionsSet77],
) -> AnyValue: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    path: _Path,
    **options: Unpack[_OptionsSet77],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    path: None = None,
    **options: Unpack[_OptionsSet78],
) -> onnx.ModelProto: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    path: _Path,
    **options: Unpack[_OptionsSet78],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    path: None = None,
    **options: Unpack[_OptionsSet79],
) -> AnyValue: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    path: _Path,
    **options: Unpack[_OptionsSet79],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    path: None = None,
    **options: Unpack[_OptionsSet80],
) -> tuple[IRModule, dict[str, Array]]: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    path: _Path,
    **options: Unpack[_OptionsSet80],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    path: None = None,
    **options: Unpack[_OptionsSet81],
) -> AnyValue: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    path: _Path,
    **options: Unpack[_OptionsSet81],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    path: None = None,
    **options: Unpack[_OptionsSet82],
) -> AnyValue: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    path: _Path,
    **options: Unpack[_OptionsSet82],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tvm"],
    path: None = None,
    **options: Unpack[_OptionsSet83],
) -> Runnable: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tvm"],
    path: _Path,
    **options: Unpack[_OptionsSet83],
) -> Path: ...
@overload
def export_model(
    model: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    path: _Path,
    **options: Unpack[_OptionsSet84],
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown, missing or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> proto = serde.export_model("net.onnx", format="onnx", opset=20)
        >>> proto.opset_import[0].version
        20"""

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
) -> AnyValue: ...
@overload
def export_model(
    model: AnyValue, params: AnyValue = None, *, format: str, **options: Unpack[_OptionsSet85]
) -> AnyValue: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["coreml"],
    path: None = None,
    **options: Unpack[_OptionsSet88],
) -> coremltools.models.MLModel: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["coreml"], path: _Path, **options: Unpack[_OptionsSet88]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["mxnet"],
    path: None = None,
    **options: Unpack[_OptionsSet90],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["mxnet"], path: _Path, **options: Unpack[_OptionsSet90]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["nnef"], path: None = None, **options: Unpack[_OptionsSet92]
) -> AnyValue: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["nnef"], path: _Path, **options: Unpack[_OptionsSet92]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["onnx"], path: None = None, **options: Unpack[_OptionsSet94]
) -> onnx.ModelProto: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["onnx"], path: _Path, **options: Unpack[_OptionsSet94]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relax"],
    path: None = None,
    **options: Unpack[_OptionsSet96],
) -> AnyValue: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["relax"], path: _Path, **options: Unpack[_OptionsSet96]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["relay"],
    path: None = None,
    **options: Unpack[_OptionsSet98],
) -> tuple[IRModule, dict[str, Array]]: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["relay"], path: _Path, **options: Unpack[_OptionsSet98]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["tflite"],
    path: None = None,
    **options: Unpack[_OptionsSet100],
) -> AnyValue: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["tflite"], path: _Path, **options: Unpack[_OptionsSet100]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue,
    *,
    format: Literal["torch"],
    path: None = None,
    **options: Unpack[_OptionsSet102],
) -> AnyValue: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["torch"], path: _Path, **options: Unpack[_OptionsSet102]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["tvm"], path: None = None, **options: Unpack[_OptionsSet104]
) -> Runnable: ...
@overload
def from_relay(
    model: AnyValue, *, format: Literal["tvm"], path: _Path, **options: Unpack[_OptionsSet104]
) -> Path: ...
@overload
def from_relay(
    model: AnyValue, *, format: None = None, path: _Path, **options: Unpack[_OptionsSet106]
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
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or cannot be used.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> x = relay.var("x", shape=(1, 3))
        >>> serde.from_relay(relay.Function([x], relay.nn.relu(x)), path="relu.onnx").name
        'relu.onnx'"""

@overload
def from_relay(
    model: AnyValue,
    *,
    format: FormatName,
    path: str | PathLike[str] | None = None,
    overwrite: bool = False,
    report: Report | None = None,
    **options: AnyValue,
) -> AnyValue: ...
@overload
def from_relay(model: AnyValue, *, format: str, **options: Unpack[_OptionsSet107]) -> AnyValue: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    **options: Unpack[_OptionsSet108],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    **options: Unpack[_OptionsSet109],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    **options: Unpack[_OptionsSet110],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    **options: Unpack[_OptionsSet111],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    **options: Unpack[_OptionsSet112],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    **options: Unpack[_OptionsSet113],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    **options: Unpack[_OptionsSet114],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    **options: Unpack[_OptionsSet115],
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    **options: Unpack[_OptionsSet116],
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: MXNet is not installed; :func:`convert` writes its files without it.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> symbol, params = serde.import_model("net.onnx")
        >>> symbol.list_arguments(), params["w"].shape
        (['x', 'w'], (3, 3))"""

@overload
def import_model(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    report: Report | None = None,
    **options: AnyValue,
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: AnyValue, params: AnyValue = None, *, format: str, **options: Unpack[_OptionsSet117]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    **options: Unpack[_OptionsSet118],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    **options: Unpack[_OptionsSet119],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    **options: Unpack[_OptionsSet120],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    **options: Unpack[_OptionsSet121],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    **options: Unpack[_OptionsSet122],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    **options: Unpack[_OptionsSet123],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    **options: Unpack[_OptionsSet124],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    **options: Unpack[_OptionsSet125],
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    **options: Unpack[_OptionsSet126],
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: MXNet is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> import mxnet as mx
        >>> block = serde.import_to_gluon("net.onnx")
        >>> block(mx.nd.array([[1, -2, 3]])).asnumpy()
        array([[1., 0., 3.]], dtype=float32)"""

@overload
def import_to_gluon(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    ctx: AnyValue = None,
    report: Report | None = None,
    **options: AnyValue,
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: AnyValue, params: AnyValue = None, *, format: str, **options: Unpack[_OptionsSet127]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["coreml"],
    **options: Unpack[_OptionsSet128],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["mxnet"],
    **options: Unpack[_OptionsSet129],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["nnef"],
    **options: Unpack[_OptionsSet130],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["onnx"],
    **options: Unpack[_OptionsSet131],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relax"],
    **options: Unpack[_OptionsSet132],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["relay"],
    **options: Unpack[_OptionsSet133],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["tflite"],
    **options: Unpack[_OptionsSet134],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: Literal["torch"],
    **options: Unpack[_OptionsSet135],
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: None = None,
    **options: Unpack[_OptionsSet136],
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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing.
        UnsupportedModelError: Some nodes cannot be converted; all of them are listed.

    Example:
        >>> model = serde.to_relay("net.onnx")
        >>> model.params["w"].shape
        (3, 3)"""

@overload
def to_relay(
    source: AnyValue,
    params: AnyValue = None,
    *,
    format: FormatName,
    report: Report | None = None,
    **options: AnyValue,
) -> RelayModel: ...
@overload
def to_relay(
    source: AnyValue, params: AnyValue = None, *, format: str, **options: Unpack[_OptionsSet137]
) -> RelayModel: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["coreml"],
    **options: Unpack[_OptionsSet138],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["mxnet"],
    **options: Unpack[_OptionsSet139],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["nnef"],
    **options: Unpack[_OptionsSet140],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["onnx"],
    **options: Unpack[_OptionsSet141],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["relax"],
    **options: Unpack[_OptionsSet142],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["relay"],
    **options: Unpack[_OptionsSet143],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["tflite"],
    **options: Unpack[_OptionsSet144],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: Literal["torch"],
    **options: Unpack[_OptionsSet145],
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: None = None,
    **options: Unpack[_OptionsSet146],
) -> Page:
    """Show a model as a page of HTML, or what differs between two.

    The page is one file that asks for nothing from anywhere. It draws the graph with the
    operators of its file, with what repeats folded; a switch shows it as Relay, before any pass. A
    model that cannot be converted is shown as far as it could be read, with its gaps marked.

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
        FormatError: The bytes are malformed; ParseError where they are Relay's text.
        LimitError: It would take more than `limits` allow.
        MissingDependency: A package that a format needs is not installed.
        OptionError: An option is unknown or missing, or nothing can be written at `path`.
        StoreError: A store does not answer, refuses, or holds no such object.

    Example:
        >>> page = serde.view("net.onnx", path="net.html")
        >>> page.path.name
        'net.html'"""

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
) -> Page: ...
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
) -> Page: ...
@overload
def view(
    source: AnyValue,
    target: AnyValue = None,
    *,
    source_format: str,
    **options: Unpack[_OptionsSet147],
) -> Page: ...

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
