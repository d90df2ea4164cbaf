"""What is done to every model between its source and its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any as AnyValue, Literal

from serde.bridge.input_types import texts_option
from serde.conversion.static import check_lengths_given, refuse_open_lengths
from serde.core import Report, dataclass, field, pause_garbage_collection, replace
from serde.core.lossy import FLOAT16_OVERFLOW, check_allowed
from serde.core.texts import weights_text
from serde.errors import OptionError, RelayError, raise_if_refused
from serde.relay import transform
from serde.relay.ir import Expr, RefCreate, RefRead, RefWrite, RelayModel, TupleType, all_nodes
from serde.relay.ir.verify import verify
from serde.walk.holes import why_without_value

__all__ = [
    "CutOptions", "Edit", "PrepareOptions", "cut_out", "prepare", "with_wanted_ends",
]  # fmt: skip

Edit = Callable[[RelayModel], RelayModel]
"""What makes another model of one, such as a function of :mod:`serde.relay.transform`."""


@dataclass(frozen=True, kw_only=True)
class CutOptions:
    """Which part of a model is wanted, what is changed in it, and what its ends are called.

    See :func:`serde.relay.transform.cut` and :func:`serde.relay.transform.rename`.

    Attributes:
        inputs: Values or nodes of the source that are the inputs of the part to convert; those
            of the model that the outputs depend on, if left out.
        outputs: Values or nodes of the source that are the outputs of the part to convert; those
            of the model, if left out. `name:1` is the second result of a node.
        edits: Functions from a :class:`RelayModel` to another that change the part, in their
            order, such as those of `serde.relay.transform`.
        rename_inputs: Other names of inputs by their names; options of a target use the new ones.
        rename_outputs: Other names of outputs by their names, likewise.
        states: Inputs that the next call is given, with the outputs that become them. Core ML,
            whose option it is too, keeps them as its own states from iOS18 on.
        cache_length: Tokens that the caches of a decoder have room for, instead of growing; see
            :func:`serde.relay.transform.fix_cache`.
        cache_batch: Texts that a decoder reads at once; one if left out beside `cache_length`.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    edits: tuple[Edit, ...] = field(
        default=(), metadata={"flag": None, "accepts": Sequence[Callable[[RelayModel], RelayModel]]}
    )
    rename_inputs: Mapping[str, str] = texts_option(
        "--rename-input", "Another name for an input; options of the target use it.", "OLD=NEW"
    )
    rename_outputs: Mapping[str, str] = texts_option(
        "--rename-output", "Another name for an output; options of the target use it.", "OLD=NEW"
    )
    states: Mapping[str, str] = texts_option(
        "--state",
        "An input that the next call is given, and the output that becomes it; for Core ML, from "
        "iOS18 on, its states.",
        "INPUT=OUTPUT",
    )
    cache_length: int | None = field(
        default=None, metadata={"help": "Tokens that caches of a decoder hold, not growing ones."}
    )
    cache_batch: int | None = field(
        default=None, metadata={"help": "Texts that a decoder reads at once, not any number."}
    )


def cut_out(model: RelayModel, options: CutOptions) -> RelayModel:
    """Return the part of a model that is wanted, edited; the model itself if all of it is.

    Raises:
        OptionError: A name is unknown, the names do not separate a part, or an edit does not fit.
    """
    part = transform.cut(model, options.inputs, options.outputs)
    for edit in options.edits:
        try:
            part = edit(part)
            verify(part.mod)
        except RelayError as error:
            raise OptionError(f"edits: {error}") from None
        if not part.is_whole:
            raise OptionError("edits: expected a model with a name for each weight and output")
    if options.edits:  # Axes may be others than the source's, whose engine is not asked.
        part = replace(part, meta=replace(part.meta, opened=None))
    return part


def with_wanted_ends(model: RelayModel, options: CutOptions) -> RelayModel:
    """Return a model with the caches and names that are asked for; the model itself if none are.

    Raises:
        OptionError: A name is unknown, or a new one taken; the model has no cache.
    """
    states = {output: name for name, output in options.states.items()}
    told = {output: name for output, name in states.items() if output in model.meta.outputs}
    if told:
        model = replace(model, meta=replace(model.meta, states={**model.meta.states, **told}))
    model = transform.fix_cache(model, options.cache_length, options.cache_batch)
    model = transform.rename(model, options.rename_inputs, options.rename_outputs)
    return _with_states(model, options) if states else model


def _with_states(model: RelayModel, options: CutOptions) -> RelayModel:
    """Return a model that knows what it is given again, by the names that it has now."""
    renamed, outputs = options.rename_inputs, options.rename_outputs
    states = {renamed.get(x, x): outputs.get(y, y) for x, y in options.states.items()}
    types: dict[str, AnyValue] = {each.name_hint: each.type for each in model.inputs()}
    result: AnyValue = model.main.body.type
    fields = result.fields if isinstance(result, TupleType) else (result,)
    made = dict(zip(model.meta.outputs, fields, strict=True))
    for name, output in states.items():
        if name not in types or output not in {*made, name}:
            listed = ", ".join([*types, *made])
            raise OptionError(
                f"states: {name}={output}: no such input or output; there are {listed}"
            )
        before, after = types[name], made.get(output, types[name])
        if before.rank != after.rank or before.dtype != after.dtype:
            raise OptionError(f"states: {name} is {before!r} and becomes {after!r}")
    changing = {output: name for name, output in states.items() if output in made}
    return replace(model, meta=replace(model.meta, states={**model.meta.states, **changing}))


@dataclass(frozen=True, kw_only=True)
class PrepareOptions(CutOptions):
    """Options of the passes between source and target.

    Attributes:
        simplify: Make the model smaller and faster where its results stay the same: merge equal
            nodes, drop those without effect, fold batch normalisations. Without it, only what
            targets need is done: functions inlined, shapes and constants evaluated, operators
            that only matter in training dropped.
        keep_batch_norm: Leave batch normalisations as they are; otherwise one that follows a
            convolution or dense layer becomes part of its weights.
        float16: Compute in float16. With ``"auto"`` those nodes stay float32 that `min_cosine`
            (0.999 if left out) needs for each output and sample, found by running both models.
        keep_io_types: With `float16`, leave the dtypes of inputs and outputs as they are.
        op_block_list: With `float16`, Relay operators or node names that stay float32, besides
            the default list.
        static: Write a model of which every length is a number, without shape arithmetic:
            ``input_shapes`` must give all those that are open, and operators are refused whose
            results have as many elements as values decide.
        allow: Names of lossy steps that may be taken.
    """

    simplify: bool = True
    keep_batch_norm: bool = False
    float16: bool | Literal["auto"] = field(default=False, metadata={
        "aliases": ("fp16",), "first": True,
        "help": "Compute in float16; auto: but for what --min-cosine (0.999) needs.",
    })  # fmt: skip
    keep_io_types: bool = False
    op_block_list: frozenset[str] = frozenset()
    static: bool = field(
        default=False,
        metadata={"help": "All lengths known: no shape arithmetic; what values decide is refused."},
    )
    allow: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        check_allowed(self.allow)


@pause_garbage_collection()
def prepare(
    model: RelayModel,
    options: PrepareOptions,
    *,
    keep_globals: bool = False,
    keep_training: bool = False,
    keep_lists: bool = False,
    keep_stored_weights: bool = False,
    report: Report,
) -> RelayModel:
    """Return a model with the same meaning in the form that targets expect.

    Functions are inlined, those that call themselves last become loops, sequences
    whose positions are known tuples; shape arithmetic and constants are evaluated,
    operators that only matter in training dropped, weights that are computed from
    weights become weights, and a result of tuples inside tuples becomes one tuple.
    Opaque functions (``Primitive``, ``Composite`` and the like) stay whole: whether
    to inline them is the target's to decide.

    Args:
        model: The model.
        options: What to do.
        keep_globals: Whether global functions stay whole too.
        keep_training: Whether operators that only matter in training stay, and batch
            normalisations with them.
        keep_lists: Whether lists of tensors stay lists; otherwise they become sequences.
        keep_stored_weights: Whether large weights in files stay as they are where the graph can
            rearrange them; the report tells which ones batch normalisations change.
        report: Filled with notes and refused steps.

    Raises:
        OptionError: A model with references is to compute in float16, or lengths of inputs are
            open where all are to be known.
        UnsupportedModelError: A step would lose precision in a way that is not allowed, or there
            are references, and lists do not stay.
    """
    if options.float16 == "auto":
        raise OptionError("float16='auto': convert and export_model have it, which run both models")
    if options.static:
        check_lengths_given(model)
    fold_batch_norm = options.simplify and not options.keep_batch_norm
    inference = transform.FoldBatchNorm(frozenset(model.params), fold_batch_norm)
    lists = [transform.ListsToSequences()] if model.mod.type_definitions else []
    needed: list[transform.Pass] = [
        *([] if keep_lists else lists),
        transform.InlineCalls(keep_globals=keep_globals),
        transform.RaiseRecursion(),
        transform.InlineCalls(keep_globals=keep_globals),
        transform.SequencesToTuples(),
        transform.FoldShape(),
        *([] if keep_training else [inference]),
        transform.EvaluateConstants(),
        transform.CountLoops(),
    ]
    smaller = [transform.RemoveIdentities(keep_training), transform.MergeEqualNodes()]
    passes = [*needed, *(smaller if options.simplify else ()), transform.RemoveDeadCode()]
    references = _references(model)
    if references:
        # The passes take a value for the same wherever it is computed.
        if options.float16:
            raise OptionError("float16: a model with references is left as it is")
        for node in () if keep_lists else references:
            name = "" if node.span is None else node.span.source_name
            report.add(type(node).__name__, name, why_without_value(node))
        raise_if_refused(report)
        return model
    model = transform.flatten_results(model)
    if keep_stored_weights and fold_batch_norm and not keep_training:
        _note_scaled(model, report)
    mod = transform.Sequential(passes).run(model.mod)[0]
    model = transform.fold_weights(
        model.evolve(mod=mod), report=report, in_place=keep_stored_weights
    )
    if options.static:
        refuse_open_lengths(model, report)
        raise_if_refused(report)
    if not options.float16:
        return model
    return _as_float16(model, options, report)


def _note_scaled(model: RelayModel, report: Report) -> None:
    """Note which weights in files batch normalisations are folded into."""
    from serde.relay.transform.fold_batch_norm import scaled_weights

    names = scaled_weights(model.main, frozenset(model.params))
    stored = [model.params[name] for name in names if model.params[name].source is not None]
    if stored:
        report.notes.append(
            f"batch normalisations are folded into "
            f"{weights_text([weight.nbytes for weight in stored])}; with "
            "keep_batch_norm (--keep-batch-norm) these stay where they are"
        )


def _references(model: RelayModel) -> list[Expr]:
    nodes = (node for each in model.mod.functions.values() for node in all_nodes(each))
    return [node for node in nodes if isinstance(node, (RefCreate, RefRead, RefWrite))]


def _as_float16(model: RelayModel, options: PrepareOptions, report: Report) -> RelayModel:
    model, keep = transform.saturate_masks(model, options.op_block_list)
    lost = transform.float16_overflows(model, keep=keep, keep_io=options.keep_io_types)
    for what in lost:
        why = "has values beyond the range of float16"
        FLOAT16_OVERFLOW.record(report, options.allow, op="cast", node=what, reason=why)
    raise_if_refused(report)
    narrow = transform.ToFloat16(keep, options.keep_io_types, frozenset(model.params))
    return transform.fold_weights(model.evolve(mod=narrow(model.mod)), report=report)
