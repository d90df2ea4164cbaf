"""Moves trained models between formats, through Relay."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any as AnyValue, Generic, Literal, TypeAlias, TypedDict, TypeVar, overload

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
from serde.conversion.routing import Route
from serde.conversion.signature import FormatName
from serde.core import Array
from serde.core.limits import Limits
from serde.core.report import Report as Report
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
from serde.relay.ir import IRModule
from serde.relay.ir.dims import Any, SymDim
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import TensorType
from serde.target.hybrid import HybridExecutor as HybridExecutor
from serde.target.regions import register_runner as register_runner
from serde.viewing.page import Page
from serde.walk.user_converters import exports as exports, imports as imports

_Path: TypeAlias = str | PathLike[str]
_InputShapes: TypeAlias = (
    Mapping[str, Sequence[int | str | SymDim | Any | range | None]]
    | Sequence[int | str | SymDim | Any | range | None]
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
_Edits: TypeAlias = Sequence[Callable[[RelayModel], RelayModel]]
_Task: TypeAlias = (
    Literal[
        "text-generation",
        "text2text-generation",
        "automatic-speech-recognition",
        "feature-extraction",
        "fill-mask",
        "text-classification",
        "image-classification",
        "zero-shot-image-classification",
    ]
    | None
)
_Dtype: TypeAlias = Literal["auto", "float32", "float16", "bfloat16"]
_Images: TypeAlias = Mapping[str, Image | str | Mapping[str, AnyValue]] | Sequence[str]
_OutputImages: TypeAlias = Mapping[str, Image | str] | Sequence[str]
_ClassLabels: TypeAlias = Sequence[str | int] | PathLike[str] | None
_Mode: TypeAlias = Literal["classifier", "regressor"] | None
_EnumeratedShapes: TypeAlias = Mapping[str, Sequence[Sequence[int]]] | Sequence[Sequence[int]]
_Int8: TypeAlias = bool | Literal["static", "dynamic", "weights"]
_CalibrationMethod: TypeAlias = Literal["minmax", "entropy", "percentile"]
_ActivationType: TypeAlias = Literal["int8", "uint8", "int16", "uint16"] | None
_Quantized: TypeAlias = Literal["exact", "qdq", "qlinear", "onnxruntime", "tensorrt"]
_Sources: TypeAlias = (
    str
    | PathLike[str]
    | Mapping[str, AnyValue]
    | Iterable[str | PathLike[str] | Mapping[str, AnyValue]]
)

class _CompileOwn(TypedDict, total=False):
    target: str | Mapping[str, AnyValue] | None
    cc: str | None
    pipeline: object
    tuning: str | None
    trials: int
    report: Report | None

class _Reading(TypedDict, total=False):
    input_shapes: _InputShapes
    """Shape of each input: integers, names of dynamic dimensions, "?" (also -1 or None) for one
    without a name, "N=1..8", "1..8" or range(1, 9) for one with bounds, "32*H" for multiples;
    a bare shape if there is one input (default {})."""
    input_dtypes: _InputDtypes
    """dtype of each input that is not what the format says or implies; a bare dtype if there is one
    input (default {})."""
    fix_inputs: Mapping[str, AnyValue]
    """Values of inputs, which are no inputs then: a number (for all elements), an array, or the path
    of a .npy file. Branches that they decide against are left (default {})."""
    keep_unknown: bool
    """Keep operators that nobody can convert as serde.foreign (default False)."""
    result_types: _ResultTypes
    """Types of what such operators give, by the node's name: "float32[1,10]", of several results a
    list (default {})."""
    labels: Sequence[str]
    """Class labels, in the order of the scores, of a model that says none itself (default ())."""

class _Every(TypedDict, total=False):
    allow: Iterable[str]
    """Names of lossy steps that may be taken (default frozenset())."""

class _Every2(TypedDict, total=False):
    converters: _Converters
    """Functions of yours that convert operators: by name, decorated by serde.imports or
    serde.exports, or in files of these (default ())."""
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

class _Passes(TypedDict, total=False):
    inputs: Sequence[str]
    """Values or nodes of the source that are the inputs of the part to convert; those of the model
    that the outputs depend on, if left out (default ())."""
    outputs: Sequence[str]
    """Values or nodes of the source that are the outputs of the part to convert; those of the model,
    if left out. name:1 is the second result of a node (default ())."""
    edits: _Edits
    """Functions from a :class:RelayModel to another that change the part, in their order, such as
    those of serde.relay.transform (default ())."""
    rename_inputs: Mapping[str, str]
    """Other names of inputs by their names; options of a target use the new ones (default {})."""
    rename_outputs: Mapping[str, str]
    """Other names of outputs by their names, likewise (default {})."""
    states: Mapping[str, str]
    """Inputs that the next call is given, with the outputs that become them. Core ML, whose option
    it is too, keeps them as its own states from iOS18 on (default {})."""
    cache_length: int | None
    """Tokens that the caches of a decoder have room for, instead of growing; see
    :func:serde.relay.transform.fix_cache (default None)."""
    cache_batch: int | None
    """Texts that a decoder reads at once; one if left out beside cache_length (default None)."""

class _Passes2(TypedDict, total=False):
    simplify: bool
    """Make the model smaller and faster where its results stay the same: merge equal nodes, drop
    those without effect, fold batch normalisations. Without it, only what targets need is
    done: functions inlined, shapes and constants evaluated, operators that only matter in
    training dropped (default True)."""
    keep_batch_norm: bool
    """Leave batch normalisations as they are; otherwise one that follows a convolution or dense
    layer becomes part of its weights (default False)."""
    float16: bool | Literal["auto"]
    """Compute in float16. With "auto" those nodes stay float32 that min_cosine (0.999 if left out)
    needs for each output and sample, found by running both models (default False)."""
    keep_io_types: bool
    """With float16, leave the dtypes of inputs and outputs as they are (default False)."""
    op_block_list: Iterable[str]
    """With float16, Relay operators or node names that stay float32, besides the default list
    (default frozenset())."""
    static: bool
    """Write a model of which every length is a number, without shape arithmetic: input_shapes must
    give all those that are open, and operators are refused whose results have as many
    elements as values decide (default False)."""

class _Writing(TypedDict, total=False):
    custom_ops: Iterable[str]
    """Operators of other frameworks that Relay does not know, by name, which are written as custom
    operators of the target (default frozenset())."""

class _WritingRelax(TypedDict, total=False):
    freeze_vars: bool
    """Put the weights into the module as constants; they are parameters behind the inputs otherwise
    (default False)."""

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

class _ReadingRelax(TypedDict, total=False):
    function: str | None
    """The function to read, if it is not called main and there are several (default None)."""
    custom_convert_map: Mapping[str, Callable[..., AnyValue]]
    """What operators become, by name (relax.nn.relu): functions of a list of Relay expressions and a
    dict of attributes, which return one expression or several (default {})."""

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
    task: _Task
    """What a checkpoint of Hugging Face, or a module of transformers, is to do (default None)."""
    part: str
    """Which model is wanted of those that it becomes: "encoder_model" or "decoder_model" (default
    '')."""
    dtype: _Dtype
    """The dtype of a checkpoint's weights: as its config says ("auto"), or another (default 'auto')."""
    raw_audio: bool
    """Whether a model of speech takes samples of sound, of which it computes the spectrogram itself,
    as Whisper's feature extractor does (default False)."""

class _ReadingTorch2(TypedDict, total=False):
    custom_convert_map: Mapping[str, Callable[..., AnyValue]]
    """What operators become, by name: functions of a list of Relay expressions (and of Python's
    values) and a list of their dtypes, which return one expression or several (default {})."""

class _ConvertOwn(TypedDict, total=False):
    params: object
    source_format: str | None
    check: bool | int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: object
    yardstick: bool
    tensor_mapping: str | PathLike[str] | None
    overwrite: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

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
    cache: Literal["states", "inputs"] | None
    """Whether what a decoder keeps between calls is states or inputs and outputs; if left out,
    states from iOS18 on where the program computes in float16 (default None)."""
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

class _Passes3(TypedDict, total=False):
    int8: _Int8
    """Quantise to integers of 8 bits: "static", activations too, by ranges measured on calibration;
    "dynamic", activations by ranges found at run time; "weights" alone; or True for what the
    target's tool is mostly used for (default False)."""
    int4: bool
    """Quantise weights to 4 bits (default False)."""
    block_size: int | None
    """Elements of a row of a weight that share a scale; the target's choice if None (default None)."""
    zero_points: bool
    """Give weights zero points, so that levels cover what each block holds (default False)."""
    int4_head: bool
    """Quantise the last product, which is the head of most models, too (default True)."""
    int4_embeddings: bool
    """Quantise tables of embeddings, too (default False)."""
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
    """Least cosine between the source's outputs and the smaller model's, likewise; nodes stay as
    they are for it with int8, and in float32 with float16="auto" (default None)."""
    perplexity_text: str | None
    """A file of text that models which generate predict, before and after (default None)."""
    max_perplexity: float | None
    """Greatest perplexity on that text; with a greater one, nothing is written (default None)."""

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
    runtime: Literal["any", "onnxruntime"]
    """What runs the model: "any", or "onnxruntime", whose own operators are then written for
    attention with a cache, rotary embeddings and norms by the root of the mean square, where
    they mean the same (default 'any')."""
    profile: str | None
    """A runtime to write for: the name of one that serde knows, or a file that tells what it takes
    (:mod:serde.onnx.profile). Operators that it lacks are said in others, and integers of 64
    bits held in 32 where it asks for that and no number changes; the report lists what is
    left (default None)."""
    local_functions: bool
    """Write global, composite and fused functions as local functions, from opset 15 on; otherwise
    their nodes go where they are called (default False)."""

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
    tvm_target: str | Mapping[str, AnyValue] | None
    """What the library is compiled for: a kind or tag of TVM, or a mapping such as {"kind": "llvm",
    "mcpu": "skylake"}, also as text in JSON; "host" is the processor at hand. If left out,
    files are for its family, and what runs here for it (default None)."""
    cc: str | None
    """What links the library: a C++ compiler for the target; one that TVM finds if left out (default
    None)."""
    pipeline: AnyValue
    """What the module goes through before TVM's build in place of serde's own passes: a name that
    relax.get_pipeline knows, a pass of TVM, or a function of modules (default None)."""
    tuning: str | None
    """A folder with records of TVM's meta schedule, which are used for what they fit (default None)."""
    trials: int
    """How many measurements are made for these records first (default 0)."""

class _ExportOwn(TypedDict, total=False):
    overwrite: bool
    report: Report | None

class _ExportOwn2(TypedDict, total=False):
    path: str | PathLike[str] | None

class _ImportOwn(TypedDict, total=False):
    report: Report | None

class _GluonOwn(TypedDict, total=False):
    ctx: object
    report: Report | None

class _BisectOwn(TypedDict, total=False):
    runtime: bool
    engine: str | None
    params: object
    target_format: str | None
    dims: Mapping[str, int] | None
    check_data: object
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _CheckOwn(TypedDict, total=False):
    params: object
    target_format: str | None
    runs: int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: object
    check_images: Mapping[str, str] | None
    float16: bool
    yardstick: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _DiffOwn(TypedDict, total=False):
    left_format: str | None
    right_format: str | None
    weights: bool
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _RouteOwn(TypedDict, total=False):
    targets: Iterable[str] | None
    profiles: Iterable[str] | None
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

class _BatchOwn(TypedDict, total=False):
    source_format: str | None
    check: bool | int
    tolerance: Tolerance | None
    dims: Mapping[str, int] | None
    check_data: str | PathLike[str] | None
    yardstick: bool
    workers: int | None
    scheduler: object
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

class _ViewOwn(TypedDict, total=False):
    path: str | PathLike[str] | None
    params: object
    target_format: str | None
    weights: bool
    seconds: float
    values: bool
    routes: bool
    dims: Mapping[str, int] | None
    check_data: object
    storage_options: Mapping[str, AnyValue] | None
    report: Report | None

_T = TypeVar("_T")

class _Format(TypedDict, Generic[_T]):
    format: _T

class _TargetFormat(TypedDict, Generic[_T]):
    target_format: _T

class _SourceFormat(TypedDict, Generic[_T]):
    source_format: _T

class _To(TypedDict, Generic[_T]):
    to: _T

class _ReadingAny(
    _ReadingCoreml,
    _ReadingMxnet,
    _ReadingNnef,
    _ReadingOnnx,
    _ReadingRelay,
    _ReadingTflite,
    _ReadingTorch,
): ...
class _Compile(
    _CompileOwn, _Reading, _Every, _Every2, _Passes, _Passes2, _Writing, _WritingRelax
): ...
class _FormatCoreml(_Format[Literal["coreml"]], _ReadingCoreml): ...
class _CompileCoreml(_Compile, _FormatCoreml): ...
class _FormatMxnet(_Format[Literal["mxnet"]], _ReadingMxnet): ...
class _CompileMxnet(_Compile, _FormatMxnet): ...
class _FormatNnef(_Format[Literal["nnef"]], _ReadingNnef): ...
class _CompileNnef(_Compile, _FormatNnef): ...
class _FormatOnnx(_Format[Literal["onnx"]], _ReadingOnnx): ...
class _CompileOnnx(_Compile, _FormatOnnx): ...
class _FormatRelax(_Format[Literal["relax"]], _ReadingRelax): ...
class _CompileRelax(_Compile, _FormatRelax): ...
class _FormatRelay(_Format[Literal["relay"]], _ReadingRelay): ...
class _CompileRelay(_Compile, _FormatRelay): ...
class _FormatTflite(_Format[Literal["tflite"]], _ReadingTflite): ...
class _CompileTflite(_Compile, _FormatTflite): ...
class _FormatTorch(_Format[Literal["torch"]], _ReadingTorch, _ReadingTorch2): ...
class _CompileTorch(_Compile, _FormatTorch): ...
class _CompileAny(_Compile, _ReadingAny): ...
class _Convert(
    _ConvertOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2, _Writing, _Passes3
): ...
class _TargetFormatCoreml(_TargetFormat[Literal["coreml"]], _WritingCoreml): ...
class _ConvertCoreml(_Convert, _TargetFormatCoreml): ...
class _TargetFormatMxnet(_TargetFormat[Literal["mxnet"]], _WritingMxnet): ...
class _ConvertMxnet(_Convert, _TargetFormatMxnet): ...
class _TargetFormatNnef(_TargetFormat[Literal["nnef"]], _WritingNnef): ...
class _ConvertNnef(_Convert, _TargetFormatNnef): ...
class _TargetFormatOnnx(_TargetFormat[Literal["onnx"]], _WritingOnnx): ...
class _ConvertOnnx(_Convert, _TargetFormatOnnx): ...
class _TargetFormatRelax(_TargetFormat[Literal["relax"]], _WritingRelax): ...
class _ConvertRelax(_Convert, _TargetFormatRelax): ...
class _TargetFormatRelay(_TargetFormat[Literal["relay"]], _WritingRelay): ...
class _ConvertRelay(_Convert, _TargetFormatRelay): ...
class _TargetFormatTflite(_TargetFormat[Literal["tflite"]], _WritingTflite, _WritingTflite2): ...
class _ConvertTflite(_Convert, _TargetFormatTflite): ...
class _TargetFormatTorch(_TargetFormat[Literal["torch"]], _WritingTorch): ...
class _ConvertTorch(_Convert, _TargetFormatTorch): ...
class _TargetFormatTvm(_TargetFormat[Literal["tvm"]], _WritingRelax, _WritingTvm): ...
class _ConvertTvm(_Convert, _TargetFormatTvm): ...
class _WritingAny(
    _WritingCoreml,
    _WritingMxnet,
    _WritingNnef,
    _WritingOnnx,
    _WritingRelax,
    _WritingRelay,
    _WritingTflite,
    _WritingTorch,
    _WritingTvm,
): ...
class _ConvertAny(_Convert, _WritingAny): ...
class _ConvertAny2(
    _ConvertOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2, _Passes3
): ...
class _Export(
    _ExportOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2, _Writing, _Passes3
): ...
class _FormatCoreml2(_Format[Literal["coreml"]], _WritingCoreml): ...
class _ExportCoreml(_Export, _FormatCoreml2): ...
class _FormatMxnet2(_Format[Literal["mxnet"]], _WritingMxnet): ...
class _ExportMxnet(_Export, _FormatMxnet2): ...
class _FormatNnef2(_Format[Literal["nnef"]], _WritingNnef): ...
class _ExportNnef(_Export, _FormatNnef2): ...
class _FormatOnnx2(_Format[Literal["onnx"]], _WritingOnnx): ...
class _ExportOnnx(_Export, _FormatOnnx2): ...
class _FormatRelax2(_Format[Literal["relax"]], _WritingRelax): ...
class _ExportRelax(_Export, _FormatRelax2): ...
class _FormatRelay2(_Format[Literal["relay"]], _WritingRelay): ...
class _ExportRelay(_Export, _FormatRelay2): ...
class _FormatTflite2(_Format[Literal["tflite"]], _WritingTflite, _WritingTflite2): ...
class _ExportTflite(_Export, _FormatTflite2): ...
class _FormatTorch2(_Format[Literal["torch"]], _WritingTorch): ...
class _ExportTorch(_Export, _FormatTorch2): ...
class _FormatTvm(_Format[Literal["tvm"]], _WritingRelax, _WritingTvm): ...
class _ExportTvm(_Export, _FormatTvm): ...
class _ExportAny(_Export, _WritingAny): ...
class _ExportAny2(
    _ExportOwn2, _ExportOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2, _Passes3
): ...
class _FromRelay(_ExportOwn, _Passes, _Passes2, _Every, _Every2, _Writing): ...
class _FromRelayCoreml(_FromRelay, _FormatCoreml2): ...
class _FromRelayMxnet(_FromRelay, _FormatMxnet2): ...
class _FromRelayNnef(_FromRelay, _FormatNnef2): ...
class _FromRelayOnnx(_FromRelay, _FormatOnnx2): ...
class _FromRelayRelax(_FromRelay, _FormatRelax2): ...
class _FromRelayRelay(_FromRelay, _FormatRelay2): ...
class _FromRelayTflite(_FromRelay, _FormatTflite2): ...
class _FromRelayTorch(_FromRelay, _FormatTorch2): ...
class _FromRelayTvm(_FromRelay, _FormatTvm): ...
class _FromRelayAny(_FromRelay, _WritingAny): ...
class _FromRelayAny2(_ExportOwn2, _ExportOwn, _Passes, _Passes2, _Every): ...
class _Import(
    _ImportOwn, _Reading, _Every, _Every2, _Passes, _Passes2, _Writing, _WritingMxnet
): ...
class _ImportCoreml(_Import, _FormatCoreml): ...
class _ImportMxnet(_Import, _FormatMxnet): ...
class _ImportNnef(_Import, _FormatNnef): ...
class _ImportOnnx(_Import, _FormatOnnx): ...
class _ImportRelax(_Import, _FormatRelax): ...
class _ImportRelay(_Import, _FormatRelay): ...
class _ImportTflite(_Import, _FormatTflite): ...
class _ImportTorch(_Import, _FormatTorch): ...
class _ImportAny(_Import, _ReadingAny): ...
class _Gluon(_GluonOwn, _Reading, _Every, _Every2, _Passes, _Passes2, _Writing, _WritingMxnet): ...
class _GluonCoreml(_Gluon, _FormatCoreml): ...
class _GluonMxnet(_Gluon, _FormatMxnet): ...
class _GluonNnef(_Gluon, _FormatNnef): ...
class _GluonOnnx(_Gluon, _FormatOnnx): ...
class _GluonRelax(_Gluon, _FormatRelax): ...
class _GluonRelay(_Gluon, _FormatRelay): ...
class _GluonTflite(_Gluon, _FormatTflite): ...
class _GluonTorch(_Gluon, _FormatTorch): ...
class _GluonAny(_Gluon, _ReadingAny): ...
class _ToRelay(_ImportOwn, _Reading, _Every, _Every2, _Passes): ...
class _ToRelayCoreml(_ToRelay, _FormatCoreml): ...
class _ToRelayMxnet(_ToRelay, _FormatMxnet): ...
class _ToRelayNnef(_ToRelay, _FormatNnef): ...
class _ToRelayOnnx(_ToRelay, _FormatOnnx): ...
class _ToRelayRelax(_ToRelay, _FormatRelax): ...
class _ToRelayRelay(_ToRelay, _FormatRelay): ...
class _ToRelayTflite(_ToRelay, _FormatTflite): ...
class _ToRelayTorch(_ToRelay, _FormatTorch): ...
class _ToRelayAny(_ToRelay, _ReadingAny): ...
class _Bisect(_BisectOwn, _Reading, _Every, _Every2): ...
class _SourceFormatCoreml(_SourceFormat[Literal["coreml"]], _ReadingCoreml): ...
class _BisectCoreml(_Bisect, _SourceFormatCoreml): ...
class _SourceFormatMxnet(_SourceFormat[Literal["mxnet"]], _ReadingMxnet): ...
class _BisectMxnet(_Bisect, _SourceFormatMxnet): ...
class _SourceFormatNnef(_SourceFormat[Literal["nnef"]], _ReadingNnef): ...
class _BisectNnef(_Bisect, _SourceFormatNnef): ...
class _SourceFormatOnnx(_SourceFormat[Literal["onnx"]], _ReadingOnnx): ...
class _BisectOnnx(_Bisect, _SourceFormatOnnx): ...
class _SourceFormatRelax(_SourceFormat[Literal["relax"]], _ReadingRelax): ...
class _BisectRelax(_Bisect, _SourceFormatRelax): ...
class _SourceFormatRelay(_SourceFormat[Literal["relay"]], _ReadingRelay): ...
class _BisectRelay(_Bisect, _SourceFormatRelay): ...
class _SourceFormatTflite(_SourceFormat[Literal["tflite"]], _ReadingTflite): ...
class _BisectTflite(_Bisect, _SourceFormatTflite): ...
class _SourceFormatTorch(_SourceFormat[Literal["torch"]], _ReadingTorch, _ReadingTorch2): ...
class _BisectTorch(_Bisect, _SourceFormatTorch): ...
class _BisectAny(_Bisect, _ReadingAny): ...
class _Check(_CheckOwn, _Reading, _Every, _Every2): ...
class _CheckCoreml(_Check, _SourceFormatCoreml): ...
class _CheckMxnet(_Check, _SourceFormatMxnet): ...
class _CheckNnef(_Check, _SourceFormatNnef): ...
class _CheckOnnx(_Check, _SourceFormatOnnx): ...
class _CheckRelax(_Check, _SourceFormatRelax): ...
class _CheckRelay(_Check, _SourceFormatRelay): ...
class _CheckTflite(_Check, _SourceFormatTflite): ...
class _CheckTorch(_Check, _SourceFormatTorch): ...
class _CheckAny(_Check, _ReadingAny): ...
class _DiffAny(_DiffOwn, _Reading, _Every, _Every2, _ReadingAny): ...
class _Route(_RouteOwn, _Reading, _Every, _Every2): ...
class _RouteCoreml(_Route, _FormatCoreml): ...
class _RouteMxnet(_Route, _FormatMxnet): ...
class _RouteNnef(_Route, _FormatNnef): ...
class _RouteOnnx(_Route, _FormatOnnx): ...
class _RouteRelax(_Route, _FormatRelax): ...
class _RouteRelay(_Route, _FormatRelay): ...
class _RouteTflite(_Route, _FormatTflite): ...
class _RouteTorch(_Route, _FormatTorch): ...
class _RouteAny(_Route, _ReadingAny): ...
class _Batch(_BatchOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2, _Writing): ...
class _ToCoreml(_To[Literal["coreml"]], _WritingCoreml): ...
class _BatchCoreml(_Batch, _ToCoreml): ...
class _ToMxnet(_To[Literal["mxnet"]], _WritingMxnet): ...
class _BatchMxnet(_Batch, _ToMxnet): ...
class _ToNnef(_To[Literal["nnef"]], _WritingNnef): ...
class _BatchNnef(_Batch, _ToNnef): ...
class _ToOnnx(_To[Literal["onnx"]], _WritingOnnx): ...
class _BatchOnnx(_Batch, _ToOnnx): ...
class _ToRelax(_To[Literal["relax"]], _WritingRelax): ...
class _BatchRelax(_Batch, _ToRelax): ...
class _ToRelay2(_To[Literal["relay"]], _WritingRelay): ...
class _BatchRelay(_Batch, _ToRelay2): ...
class _ToTflite(_To[Literal["tflite"]], _WritingTflite, _WritingTflite2): ...
class _BatchTflite(_Batch, _ToTflite): ...
class _ToTorch(_To[Literal["torch"]], _WritingTorch): ...
class _BatchTorch(_Batch, _ToTorch): ...
class _ToTvm(_To[Literal["tvm"]], _WritingRelax, _WritingTvm): ...
class _BatchTvm(_Batch, _ToTvm): ...
class _BatchAny(_Batch, _WritingAny): ...
class _BatchAny2(_BatchOwn, _Reading, _Every, _Every2, _ReadingAny, _Passes, _Passes2): ...
class _View(_ViewOwn, _Reading, _Every, _Every2): ...
class _ViewCoreml(_View, _SourceFormatCoreml): ...
class _ViewMxnet(_View, _SourceFormatMxnet): ...
class _ViewNnef(_View, _SourceFormatNnef): ...
class _ViewOnnx(_View, _SourceFormatOnnx): ...
class _ViewRelax(_View, _SourceFormatRelax): ...
class _ViewRelay(_View, _SourceFormatRelay): ...
class _ViewTflite(_View, _SourceFormatTflite): ...
class _ViewTorch(_View, _SourceFormatTorch): ...
class _ViewAny(_View, _ReadingAny): ...

@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileCoreml]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileMxnet]
) -> Runnable: ...
@overload
def compile(source: object, params: object = None, **options: Unpack[_CompileNnef]) -> Runnable: ...
@overload
def compile(source: object, params: object = None, **options: Unpack[_CompileOnnx]) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileRelax]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileRelay]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileTflite]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, **options: Unpack[_CompileTorch]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, *, format: None = None, **options: Unpack[_CompileAny]
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> Runnable: ...
@overload
def compile(
    source: object, params: object = None, *, format: str, **options: Unpack[_Compile]
) -> Runnable: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertCoreml]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertMxnet]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertNnef]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertOnnx]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertRelax]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertRelay]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertTflite]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertTorch]) -> Report: ...
@overload
def convert(source: object, target: _Path, **options: Unpack[_ConvertTvm]) -> Report: ...
@overload
def convert(
    source: object, target: _Path, *, target_format: None = None, **options: Unpack[_ConvertAny]
) -> Report: ...
@overload
def convert(
    source: object, target: _Path, *, source_format: FormatName, **options: AnyValue
) -> Report: ...
@overload
def convert(
    source: object, target: _Path, *, target_format: FormatName, **options: AnyValue
) -> Report: ...
@overload
def convert(
    source: object, target: _Path, *, target_format: str, **options: Unpack[_ConvertAny2]
) -> Report: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportCoreml]
) -> coremltools.models.MLModel: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportCoreml]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportMxnet]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportMxnet]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportNnef]
) -> AnyValue: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportNnef]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportOnnx]
) -> onnx.ModelProto: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportOnnx]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportRelax]
) -> AnyValue: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportRelax]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportRelay]
) -> tuple[IRModule, dict[str, Array]]: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportRelay]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportTflite]
) -> AnyValue: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportTflite]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportTorch]
) -> AnyValue: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportTorch]
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, path: None = None, **options: Unpack[_ExportTvm]
) -> Runnable: ...
@overload
def export_model(
    model: object, params: object = None, *, path: _Path, **options: Unpack[_ExportTvm]
) -> Path: ...
@overload
def export_model(
    model: object,
    params: object = None,
    *,
    format: None = None,
    path: _Path,
    **options: Unpack[_ExportAny],
) -> Path: ...
@overload
def export_model(
    model: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> AnyValue: ...
@overload
def export_model(
    model: object, params: object = None, *, format: str, **options: Unpack[_ExportAny2]
) -> AnyValue: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayCoreml]
) -> coremltools.models.MLModel: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayCoreml]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayMxnet]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayMxnet]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayNnef]
) -> AnyValue: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayNnef]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayOnnx]
) -> onnx.ModelProto: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayOnnx]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayRelax]
) -> AnyValue: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayRelax]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayRelay]
) -> tuple[IRModule, dict[str, Array]]: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayRelay]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayTflite]
) -> AnyValue: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayTflite]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayTorch]
) -> AnyValue: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayTorch]) -> Path: ...
@overload
def from_relay(
    model: object, *, path: None = None, **options: Unpack[_FromRelayTvm]
) -> Runnable: ...
@overload
def from_relay(model: object, *, path: _Path, **options: Unpack[_FromRelayTvm]) -> Path: ...
@overload
def from_relay(
    model: object, *, format: None = None, path: _Path, **options: Unpack[_FromRelayAny]
) -> Path: ...
@overload
def from_relay(model: object, *, format: FormatName, **options: AnyValue) -> AnyValue: ...
@overload
def from_relay(model: object, *, format: str, **options: Unpack[_FromRelayAny2]) -> AnyValue: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportCoreml]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportMxnet]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportNnef]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportOnnx]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportRelax]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportRelay]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportTflite]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, **options: Unpack[_ImportTorch]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, *, format: None = None, **options: Unpack[_ImportAny]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_model(
    source: object, params: object = None, *, format: str, **options: Unpack[_Import]
) -> tuple[mxnet.Symbol, Params]: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonCoreml]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonMxnet]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonNnef]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonOnnx]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonRelax]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonRelay]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonTflite]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, **options: Unpack[_GluonTorch]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, *, format: None = None, **options: Unpack[_GluonAny]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> mxnet.gluon.SymbolBlock: ...
@overload
def import_to_gluon(
    source: object, params: object = None, *, format: str, **options: Unpack[_Gluon]
) -> mxnet.gluon.SymbolBlock: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayCoreml]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayMxnet]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayNnef]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayOnnx]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayRelax]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayRelay]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayTflite]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, **options: Unpack[_ToRelayTorch]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, *, format: None = None, **options: Unpack[_ToRelayAny]
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> RelayModel: ...
@overload
def to_relay(
    source: object, params: object = None, *, format: str, **options: Unpack[_ToRelay]
) -> RelayModel: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectCoreml]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectMxnet]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectNnef]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectOnnx]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectRelax]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectRelay]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectTflite]
) -> Bisection: ...
@overload
def bisect(
    source: object, target: str | PathLike[str] | None = None, **options: Unpack[_BisectTorch]
) -> Bisection: ...
@overload
def bisect(
    source: object,
    target: str | PathLike[str] | None = None,
    *,
    source_format: None = None,
    **options: Unpack[_BisectAny],
) -> Bisection: ...
@overload
def bisect(
    source: object,
    target: str | PathLike[str] | None = None,
    *,
    source_format: FormatName,
    **options: AnyValue,
) -> Bisection: ...
@overload
def bisect(
    source: object,
    target: str | PathLike[str] | None = None,
    *,
    target_format: FormatName,
    **options: AnyValue,
) -> Bisection: ...
@overload
def bisect(
    source: object,
    target: str | PathLike[str] | None = None,
    *,
    source_format: str,
    **options: Unpack[_Bisect],
) -> Bisection: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckCoreml]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckMxnet]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckNnef]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckOnnx]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckRelax]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckRelay]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckTflite]) -> Report: ...
@overload
def check(source: object, target: _Path, **options: Unpack[_CheckTorch]) -> Report: ...
@overload
def check(
    source: object, target: _Path, *, source_format: None = None, **options: Unpack[_CheckAny]
) -> Report: ...
@overload
def check(
    source: object, target: _Path, *, source_format: FormatName, **options: AnyValue
) -> Report: ...
@overload
def check(
    source: object, target: _Path, *, target_format: FormatName, **options: AnyValue
) -> Report: ...
@overload
def check(
    source: object, target: _Path, *, source_format: str, **options: Unpack[_Check]
) -> Report: ...
@overload
def diff(left: object, right: object, **options: Unpack[_DiffAny]) -> ModelDiff: ...
@overload
def diff(
    left: object, right: object, *, left_format: FormatName, **options: AnyValue
) -> ModelDiff: ...
@overload
def diff(
    left: object, right: object, *, right_format: FormatName, **options: AnyValue
) -> ModelDiff: ...
@overload
def route(
    source: object, params: object = None, **options: Unpack[_RouteCoreml]
) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteMxnet]) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteNnef]) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteOnnx]) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteRelax]) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteRelay]) -> list[Route]: ...
@overload
def route(
    source: object, params: object = None, **options: Unpack[_RouteTflite]
) -> list[Route]: ...
@overload
def route(source: object, params: object = None, **options: Unpack[_RouteTorch]) -> list[Route]: ...
@overload
def route(
    source: object, params: object = None, *, format: None = None, **options: Unpack[_RouteAny]
) -> list[Route]: ...
@overload
def route(
    source: object, params: object = None, *, format: FormatName, **options: AnyValue
) -> list[Route]: ...
@overload
def route(
    source: object, params: object = None, *, format: str, **options: Unpack[_Route]
) -> list[Route]: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchCoreml]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchMxnet]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchNnef]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchOnnx]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchRelax]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchRelay]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchTflite]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchTorch]) -> BatchReport: ...
@overload
def batch(sources: _Sources, *, out: _Path, **options: Unpack[_BatchTvm]) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: None, out: _Path, **options: Unpack[_BatchAny]
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: str, out: _Path, source_format: FormatName, **options: AnyValue
) -> BatchReport: ...
@overload
def batch(
    sources: _Sources, *, to: str, out: _Path, **options: Unpack[_BatchAny2]
) -> BatchReport: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewCoreml]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewMxnet]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewNnef]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewOnnx]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewRelax]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewRelay]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewTflite]) -> Page: ...
@overload
def view(source: object, target: object = None, **options: Unpack[_ViewTorch]) -> Page: ...
@overload
def view(
    source: object,
    target: object = None,
    *,
    source_format: None = None,
    **options: Unpack[_ViewAny],
) -> Page: ...
@overload
def view(
    source: object, target: object = None, *, source_format: FormatName, **options: AnyValue
) -> Page: ...
@overload
def view(
    source: object, target: object = None, *, target_format: FormatName, **options: AnyValue
) -> Page: ...
@overload
def view(
    source: object, target: object = None, *, source_format: str, **options: Unpack[_View]
) -> Page: ...

__all__: list[str]
