"""What a module is asked: its inputs with their lengths, and a call that takes them by name.

Nothing here knows a family. Inputs are those that ``forward`` has and the config says something of;
what is kept between calls is found by running the module once, on the layers of its cache.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any as AnyValue, Final, TypeAlias

from serde.core import dataclass, field, require
from serde.errors import Unsupported
from serde.relay.ir import Dim, substitute, symbol
from serde.torch.checkpoint.tasks import PARTS

__all__ = ["BATCH", "SEQUENCE", "Asked", "Inputs", "Tensors", "ask", "float_dtype"]

Tensors: TypeAlias = Mapping[str, AnyValue]
Inputs: TypeAlias = dict[str, tuple[tuple[Dim, ...], str]]

BATCH, SEQUENCE, PAST = symbol("batch"), symbol("sequence"), symbol("past")
ENCODED = symbol("encoder_sequence")

_LENGTHS: Final = {
    "batch": 2, "sequence": 3, "past": 5, "encoder_sequence": 7, "text_batch": 3,
    "image_batch": 2, "samples": 8000, "frames": 64, "height": 4, "width": 6, "patches": 9,
}  # fmt: skip
"""Lengths in examples, each another, so that none is taken for another."""


_TOKEN_BY_TOKEN: Final = (
    "takes one token at a time, a prompt token by token and without padding: layers with a "
    "recurrence compute a prompt by a loop of another length for each"
)


@dataclass(frozen=True)
class Asked:
    """How a module is called.

    Attributes:
        function: Takes tensors by name and returns such.
        inputs: Shape and dtype of each input.
        states: Inputs that the next call is given, by the outputs that become them.
        notes: What users should know of it.
    """

    function: Callable[[Tensors], Tensors]
    inputs: Inputs
    states: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()

    def examples(self) -> dict[str, AnyValue]:
        """Return tensors to run it with: tokens and floats of zero, masks of one."""
        torch = require("torch")
        made = {}
        for name, (shape, dtype) in self.inputs.items():
            lengths = [substitute(each, _LENGTHS) for each in shape]
            fill = torch.ones if name.endswith("attention_mask") else torch.zeros
            made[name] = fill(lengths, dtype=getattr(torch, dtype))
        return made


def ask(module: AnyValue, task: str, part: str) -> Asked:
    """Return how a module is called for a task.

    Args:
        module: The module.
        task: The task.
        part: Which of :data:`PARTS`; empty for models that are one.

    Raises:
        Unsupported: What it keeps between calls has no counterpart.
    """
    if part:
        encode = _encoder(module)
        return encode if part == PARTS[0] else _paired_decoder(module, encode)
    return _decoder(module) if task == "text-generation" else _once(module)


def float_dtype(x: AnyValue) -> str:
    """Return the dtype of a tensor, or that of a module's numbers with a fraction."""
    return str(x.dtype).removeprefix("torch.")


def _takes(module: AnyValue) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(module.forward).parameters


def _only_tensors(found: AnyValue) -> dict[str, AnyValue]:
    torch = require("torch")
    return {name: each for name, each in found.items() if isinstance(each, torch.Tensor)}


# Models that are called once.


def _once(module: AnyValue) -> Asked:
    """Return a call with all inputs that a module has, which gives all tensors that it gives."""
    if module.config.is_encoder_decoder:
        raise Unsupported("an encoder and a decoder have no features without a prompt")
    inputs = _found_inputs(module)
    fixed = {"return_dict": True, "use_cache": False}
    fixed = {name: value for name, value in fixed.items() if name in _takes(module)}
    return Asked(lambda tensors: _only_tensors(module(**tensors, **fixed)), inputs)


def _found_inputs(module: AnyValue) -> Inputs:
    """Return what a module takes, the input that it is named for first."""
    known, takes, main = _known_inputs(module), _takes(module), module.main_input_name
    if main not in known:
        raise Unsupported(f"nothing is known of the input {main}")
    masks = () if "input_ids" in takes else ("attention_mask", "token_type_ids")
    wanted = [main, *(name for name in known if name != main and name not in masks)]
    return {name: known[name] for name in wanted if name in takes}


def _known_inputs(module: AnyValue) -> Inputs:
    """Return shapes and dtypes of inputs by name, as the config says them."""
    config, takes = module.config, _takes(module)
    vision, text = (getattr(config, f"{kind}_config", config) for kind in ("vision", "text"))
    both = "input_ids" in takes and "pixel_values" in takes
    batch = symbol("text_batch") if both else BATCH
    rows, floats = (batch, SEQUENCE), float_dtype(module)
    known: Inputs = {"input_ids": (rows, "int64")}
    size = getattr(vision, "image_size", None)
    if size is not None:
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        channels = getattr(vision, "num_channels", 3)
        images = symbol("image_batch") if both else BATCH
        known["pixel_values"] = ((images, channels, height, width), floats)
    known["input_values"] = ((BATCH, symbol("samples")), floats)
    if hasattr(config, "num_mel_bins"):
        # Positions of the encoder are learned for this length alone, behind a stride of two.
        length = getattr(config, "max_source_positions", None)
        frames = symbol("frames") if length is None else 2 * length
        known["input_features"] = ((BATCH, config.num_mel_bins, frames), floats)
    known["attention_mask"] = (rows, "int64")
    if getattr(text, "type_vocab_size", 0) > 1:
        known["token_type_ids"] = (rows, "int64")
    return known


# Decoders.


def _decoder(module: AnyValue) -> Asked:
    """Return a call that serves the prompt and each step: the past may be empty.

    Layers with a recurrence compute a prompt by a loop of Python's over its tokens, or chunks of
    them; their call takes one token.
    """
    torch, takes = require("torch"), _takes(module)
    keyword = next((name for name in ("past_key_values", "cache_params") if name in takes), "")
    prompt = torch.zeros((_LENGTHS["batch"], _LENGTHS["sequence"]), dtype=torch.int64)
    layers = _layers(getattr(module(input_ids=prompt, use_cache=True), keyword, None))
    states = _named_states(layers)
    length = 1 if any(".recurrent" in name for name in states) else SEQUENCE
    rows = (BATCH, length)
    inputs: Inputs = {"input_ids": (rows, "int64")}
    if "attention_mask" in takes and any(name.endswith(".key") for name in states):
        inputs["attention_mask"] = ((BATCH, PAST + length), "int64")
    if "position_ids" in takes:
        inputs["position_ids"] = (rows, "int64")
    own = list(inputs)
    for name, tensor in states.items():
        _, second, *rest = tensor.shape
        kept = [PAST, rest[-1]] if name.endswith((".key", ".value")) else rest
        inputs[f"past_key_values.{name}"] = ((BATCH, second, *kept), float_dtype(tensor))

    def run(tensors: Tensors) -> Tensors:
        cache = _cache(layers, {name: tensors[f"past_key_values.{name}"] for name in states})
        given = {name: tensors[name] for name in own}
        found = module(**given, **{keyword: cache}, use_cache=True)
        return {"logits": found.logits, **_present(_named_states(cache.layers))}

    notes = [_TOKEN_BY_TOKEN] if length == 1 else []
    return Asked(run, inputs, {f"present.{x}": f"past_key_values.{x}" for x in states}, notes)


def _present(states: Tensors) -> dict[str, AnyValue]:
    return {f"present.{name}": each for name, each in states.items()}


def _layers(cache: AnyValue) -> Sequence[AnyValue]:
    """Return the layers of a cache, each with what it keeps."""
    layers = getattr(cache, "layers", None)
    if not layers:
        raise Unsupported("the module returns no cache")
    kinds = require("transformers").cache_utils
    for place, each in enumerate(layers):
        linear = isinstance(each, kinds.LinearAttentionCacheLayerMixin)
        if linear and isinstance(each, kinds.DynamicSlidingWindowLayer):
            raise Unsupported(f"layer {place} has a window beside a recurrence")
        if not linear and not isinstance(each, kinds.DynamicLayer):
            raise Unsupported(
                f"layer {place} keeps a {type(each).__name__}, of which nothing is known"
            )
    return list(layers)


def _named_states(layers: Sequence[AnyValue], between: str = "") -> dict[str, AnyValue]:
    """Return what layers of a cache keep, by their places and what it is."""
    found: dict[str, AnyValue] = {}
    for place, layer in enumerate(layers):
        kept: dict[str, AnyValue] = {}
        if getattr(layer, "keys", None) is not None:
            kept |= {"key": layer.keys, "value": layer.values}
        for kind in ("conv", "recurrent"):
            several = getattr(layer, f"{kind}_states", {})
            kept |= {f"{kind}_{i}" if i else kind: x for i, x in several.items() if x is not None}
        found |= {f"{place}.{between}{what}": each for what, each in kept.items()}
    return found


def _cache(layers: Sequence[AnyValue], states: Tensors, between: str = "") -> AnyValue:
    """Return a cache of layers like others, which hold states.

    All layers of keys and values keep the whole past: windows are applied by the mask. States that
    are written in place are copies.
    """
    kinds = require("transformers").cache_utils
    cache = kinds.DynamicCache()
    for place, each in enumerate(layers):
        prefix = f"{place}.{between}"
        linear = isinstance(each, kinds.LinearAttentionCacheLayerMixin)
        layer = copy(each) if linear else kinds.DynamicLayer()
        if f"{prefix}key" in states:
            layer.keys, layer.values = states[f"{prefix}key"], states[f"{prefix}value"]
            layer.dtype, layer.device = layer.keys.dtype, layer.keys.device
            layer.is_initialized = True
        for kind in ("conv", "recurrent") if linear else ():
            own = {
                i: states.get(f"{prefix}{kind}_{i}" if i else f"{prefix}{kind}")
                for i in range(layer.number_of_states)
            }
            held = {i: None if x is None else x.clone() for i, x in own.items()}
            setattr(layer, f"{kind}_states", held)
        cache.layers.append(layer)
    return cache


# Encoders with decoders: the encoder also gives the keys and values that the decoder attends to.


def _encoder(module: AnyValue) -> Asked:
    """Return a call of the encoder.

    What the decoder computes of its result alone, once for all steps, is taken from a decoder that
    is run on one token; nothing else of that is kept.
    """
    torch, encoder = require("torch"), module.get_encoder()
    known, takes = _known_inputs(module), _takes(encoder)
    main = encoder.main_input_name
    if main not in known:
        raise Unsupported(f"nothing is known of the input {main}")
    inputs = {main: known[main]}
    if main == "input_ids" and "attention_mask" in takes:
        inputs["attention_mask"] = known["attention_mask"]

    def run(tensors: Tensors) -> Tensors:
        first = torch.zeros((tensors[main].shape[0], 1), dtype=torch.int64)
        found = module(**tensors, decoder_input_ids=first, use_cache=True)
        layers = _layers(found.past_key_values.cross_attention_cache)
        hidden = {"last_hidden_state": found.encoder_last_hidden_state}
        return {**hidden, **_present(_named_states(layers, "encoder."))}

    return Asked(run, inputs)


def _paired_decoder(module: AnyValue, encode: Asked) -> Asked:
    """Return a call of the decoder, to which the encoder's keys and values are given."""
    torch, kinds = require("torch"), require("transformers").cache_utils
    prompt = torch.zeros((_LENGTHS["batch"], 1), dtype=torch.int64)
    found = module(**encode.examples(), decoder_input_ids=prompt, use_cache=True)
    own = _layers(found.past_key_values.self_attention_cache)
    cross = _layers(found.past_key_values.cross_attention_cache)
    width = found.encoder_last_hidden_state.shape[-1]
    output_kind = type(module.get_encoder()(**encode.examples(), return_dict=True))
    inputs: Inputs = {"input_ids": ((BATCH, SEQUENCE), "int64")}
    masked = "attention_mask" in encode.inputs
    if masked:
        inputs["encoder_attention_mask"] = ((BATCH, ENCODED), "int64")
    states, others = _named_states(own, "decoder."), _named_states(cross, "encoder.")
    for length, several in ((PAST, states), (ENCODED, others)):
        for name, tensor in several.items():
            shape = (BATCH, tensor.shape[1], length, tensor.shape[3])
            inputs[f"past_key_values.{name}"] = (shape, float_dtype(tensor))

    def run(tensors: Tensors) -> Tensors:
        past = {name: tensors[f"past_key_values.{name}"] for name in (*states, *others)}
        cache = kinds.EncoderDecoderCache(kinds.DynamicCache(), kinds.DynamicCache())
        cache.self_attention_cache = _cache(own, past, "decoder.")
        cache.cross_attention_cache = _cache(cross, past, "encoder.")
        cache.is_updated = dict.fromkeys(range(len(cross)), True)
        keys = cache.cross_attention_cache.layers[0].keys
        # Only its lengths are read: what is computed of it is in the cache.
        hidden = keys.new_zeros((keys.shape[0], keys.shape[2], width))
        mask = {"attention_mask": tensors["encoder_attention_mask"]} if masked else {}
        found = module(
            encoder_outputs=output_kind(last_hidden_state=hidden),
            decoder_input_ids=tensors["input_ids"],
            past_key_values=cache,
            use_cache=True,
            **mask,
        )
        layers = found.past_key_values.self_attention_cache.layers
        return {"logits": found.logits, **_present(_named_states(layers, "decoder."))}

    return Asked(run, inputs, {f"present.{x}": f"past_key_values.{x}" for x in states})
