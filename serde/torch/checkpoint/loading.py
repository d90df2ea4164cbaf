"""Modules whose parameters are no memory: what transformers would load, as places in files.

transformers itself loads the checkpoint, with tensors that have shapes and no values. What it does
to them on the way (experts are stacked, projections split, dtypes changed) is recorded, and becomes
an expression over the tensors on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any as AnyValue, Final

from serde.core import Report, Weight, dataclass, require
from serde.engine.base import first_line
from serde.errors import FormatError, OptionError, SerdeError
from serde.relay.ir import Tuple, Var
from serde.relay.run.computed import ComputedWeight
from serde.torch.checkpoint.files import CONFIG, Checkpoint
from serde.torch.importer import to_relay
from serde.torch.model import Graph, Node, Ref, TorchModel
from serde.torch.options import TorchImportOptions
from serde.torch.written.module import to_tensor

__all__ = ["Loaded", "load_config", "load_extractor", "load_module", "load_values"]

_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DEACTIVATE_ASYNC_LOAD": "1",
}  # fmt: skip


_LOCAL: Final[Mapping[str, AnyValue]] = {"local_files_only": True, "trust_remote_code": False}


@dataclass(frozen=True)
class Loaded:
    """A module, and where its parameters are.

    Attributes:
        module: The module; its parameters have shapes alone.
        weights: What each of them is, by its name in the module.
        mode: The mode of PyTorch in which such tensors are computed with.
    """

    module: AnyValue
    weights: Mapping[str, Weight]
    mode: AnyValue


def load_config(checkpoint: Checkpoint) -> AnyValue:
    """Return the config as transformers has it.

    Raises:
        FormatError: transformers refuses it, or does not know the family.
    """
    transformers, path = require("transformers"), checkpoint.path
    place = {} if path.is_dir() else {"gguf_file": path.name}
    with _offline(), _telling(checkpoint, CONFIG):
        config = transformers.AutoConfig.from_pretrained(
            str(path if path.is_dir() else path.parent), **_LOCAL, **place
        )
    if hasattr(config, "quantization_config"):  # Its packages would be asked for, without need.
        del config.quantization_config
    return config


def load_extractor(checkpoint: Checkpoint) -> AnyValue:
    """Return what makes the inputs of a model of speech, as the folder has it.

    Raises:
        FormatError: It has none.
    """
    transformers = require("transformers")
    with _offline(), _telling(checkpoint, "feature extractor"):
        return transformers.AutoFeatureExtractor.from_pretrained(str(checkpoint.path), **_LOCAL)


def load_module(
    checkpoint: Checkpoint, kind: type[AnyValue], config: AnyValue, dtype: str
) -> Loaded:
    """Return a module of a class without values.

    Args:
        checkpoint: The checkpoint.
        kind: The class.
        config: The config as transformers has it; None for a class of diffusers.
        dtype: The dtype of numbers with a fraction; "auto" as the checkpoint says.

    Raises:
        FormatError: A weight is missing, left over or of another shape, or tied weights differ.
    """
    torch = require("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    mode = FakeTensorMode(allow_non_fake_inputs=True)
    weights = _weights(checkpoint, kind, config, dtype)
    with mode:
        state = {
            name: torch.empty(each.shape, dtype=getattr(torch, each.dtype))
            for name, each in weights.items()
        }
    recording = _Recording(checkpoint, weights, state)
    if config is None:
        with _offline(), mode, _telling(checkpoint, CONFIG):
            module = kind.from_config(dict(checkpoint.config)).eval()
        with recording.mode(), _telling(checkpoint, "weights"):
            info = _fill(module, dict(state), dtype)
    else:
        with _offline(), recording.mode(), _telling(checkpoint, "weights"):
            module, info = kind.from_pretrained(
                None,
                config=config,
                state_dict=dict(state),
                dtype=_torch_dtype(dtype),
                output_loading_info=True,
            )
    _check_loaded(checkpoint, info)
    return Loaded(module, recording.weights(module), mode)


def _fill(module: AnyValue, state: dict[str, AnyValue], dtype: str) -> dict[str, AnyValue]:
    """Give a module of diffusers its state; return what is missing or of another shape.

    What it computes itself instead of loading it is missing, too: it would have no values.
    """
    module._fix_state_dict_keys_on_load(state)  # Names of older releases.
    wanted = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    other = [
        (name, state[name].shape, each.shape)
        for name, each in wanted.items()
        if name in state and state[name].shape != each.shape
    ]
    if not other:
        if dtype != "auto":
            kind = _torch_dtype(dtype)
            state = {name: x.to(kind) if x.is_floating_point() else x for name, x in state.items()}
        module.load_state_dict(state, strict=False, assign=True)
    missing = wanted.keys() - state.keys()
    return {"missing_keys": missing, "mismatched_keys": other, "error_msgs": []}


def load_values(
    checkpoint: Checkpoint, kind: type[AnyValue], config: AnyValue, dtype: str
) -> AnyValue:
    """Return the module with all values in memory, which can run."""
    path: str | None = str(checkpoint.path)
    given: dict[str, AnyValue] = {"use_safetensors": True, "local_files_only": True}
    if config is None:
        stored = (each.dtype for each in checkpoint.weights.values() if "float" in each.dtype)
        dtype = next(stored, "float32") if dtype == "auto" else dtype
        given |= {"torch_dtype": _torch_dtype(dtype), "low_cpu_mem_usage": False}
    else:
        if checkpoint.unpack is not None:
            weights = _weights(checkpoint, kind, config, dtype)
            path, given = None, {"state_dict": {name: to_tensor(x) for name, x in weights.items()}}
        given |= {"config": config, "dtype": _torch_dtype(dtype), "trust_remote_code": False}
    with _offline(), _telling(checkpoint, "weights"):
        return kind.from_pretrained(path, **given)


def _weights(
    checkpoint: Checkpoint, kind: type[AnyValue], config: AnyValue, dtype: str
) -> Mapping[str, Weight]:
    """Return all tensors of a checkpoint, those that are packed in the dtype of the module."""
    if checkpoint.unpack is None:
        return checkpoint.weights
    with _telling(checkpoint, CONFIG), require("torch").device("meta"):
        module = kind(config)
        own = str(getattr(config, "dtype", None) or "").removeprefix("torch.")
        return checkpoint.unpack(module, (own if dtype == "auto" else dtype) or None)


def _torch_dtype(dtype: str) -> AnyValue:
    return dtype if dtype == "auto" else getattr(require("torch"), dtype)


@contextmanager
def _telling(checkpoint: Checkpoint, what: str) -> Iterator[None]:
    """Say of errors of transformers which folder they are about."""
    try:
        yield
    except SerdeError:
        raise
    except ModuleNotFoundError as error:
        raise OptionError(f"transformers does not load: {first_line(error)}") from error
    except Exception as error:
        raise FormatError(f"{what}: {first_line(error)}", path=checkpoint.path) from error


@contextmanager
def _offline() -> Iterator[None]:
    """Have transformers fetch nothing, log nothing, and load one tensor after the other."""
    logs = require("transformers").utils.logging
    level, bars = logs.get_verbosity(), logs.is_progress_bar_enabled()
    before = {name: os.environ.get(name) for name in _OFFLINE}
    os.environ.update(_OFFLINE)
    logs.set_verbosity(logs.CRITICAL)
    logs.disable_progress_bar()
    try:
        yield
    finally:
        os.environ.update({name: each for name, each in before.items() if each is not None})
        for name in (name for name, each in before.items() if each is None):
            os.environ.pop(name, None)
        logs.set_verbosity(level)
        if bars:
            logs.enable_progress_bar()


def _check_loaded(checkpoint: Checkpoint, info: Mapping[str, AnyValue]) -> None:
    """Refuse weights that the module lacks, or that it has otherwise; others are left out."""
    missing, other = sorted(info["missing_keys"]), sorted(info["mismatched_keys"])
    if other:
        name, found, wanted = other[0]
        told = f"{name}: expected {list(wanted)}, as {CONFIG} says, found {list(found)}"
        raise FormatError(told, path=checkpoint.path)
    if missing:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        raise FormatError(f"the weight {missing[0]}{more} is missing", path=checkpoint.path)
    if info["error_msgs"]:
        raise FormatError(str(info["error_msgs"][0])[:300], path=checkpoint.path)


class _Recording:
    """What is done to the tensors of a checkpoint while it is loaded.

    Args:
        checkpoint: The checkpoint.
        weights: Its tensors.
        state: The same, without values.
    """

    def __init__(
        self, checkpoint: Checkpoint, weights: Mapping[str, Weight], state: Mapping[str, AnyValue]
    ) -> None:
        self._checkpoint = checkpoint
        self._weights = weights
        self._nodes: list[Node] = []
        self._held: list[AnyValue] = [*state.values()]
        self._names = {id(each): f"weight_{i}" for i, each in enumerate(self._held)}
        self._sources = {f"weight_{i}": name for i, name in enumerate(state)}

    def mode(self) -> AnyValue:
        """Return the mode of PyTorch in which everything is recorded."""
        from torch.utils._python_dispatch import TorchDispatchMode

        record = self._record

        class Mode(TorchDispatchMode):  # type: ignore[misc]
            def __torch_dispatch__(
                self,
                function: AnyValue,
                types: AnyValue,
                args: AnyValue = (),
                kwargs: AnyValue = None,
            ) -> AnyValue:
                return record(function, args, kwargs or {})

        return Mode()

    def _record(self, function: AnyValue, args: AnyValue, kwargs: AnyValue) -> AnyValue:
        from torch.utils import _pytree

        known = [id(each) in self._names for each in _pytree.tree_leaves((args, kwargs))]
        if not any(known) or function.namespace != "aten":
            return function(*args, **kwargs)
        if function._schema.name == "aten::equal":
            return self._are_equal(*args)
        found = function(*args, **kwargs)
        outputs = found if isinstance(found, (list, tuple)) else [found]
        names = [f"loaded_{len(self._held) + place}" for place in range(len(outputs))]
        parameters = [each.name for each in function._schema.arguments]
        given = {**dict(zip(parameters, args, strict=False)), **kwargs}
        schema, overload = function._schema.name, function._schema.overload_name
        self._nodes.append(
            Node(
                f"{schema}.{overload}" if overload else schema,
                names[0],
                [(name, self._argument(each)) for name, each in given.items()],
                names,
            )
        )
        self._names |= {id(each): name for each, name in zip(outputs, names, strict=True)}
        self._held += outputs
        return found

    def _argument(self, value: AnyValue) -> AnyValue:
        torch = require("torch")
        if isinstance(value, (list, tuple)):
            return [self._argument(each) for each in value]
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return str(value).removeprefix("torch.")
        if isinstance(value, torch.device):
            return str(value)
        return Ref(self._names[id(value)]) if id(value) in self._names else value

    def _are_equal(self, one: AnyValue, other: AnyValue) -> bool:
        """Compare tied weights that are both on disk."""
        first, second = self._read([one, other])
        if not all(a == b for a, b in zip_longest(first.chunks(), second.chunks())):
            raise FormatError("tied weights differ on disk", path=self._checkpoint.path)
        return True

    def weights(self, module: AnyValue) -> dict[str, Weight]:
        """Return what each parameter and buffer of a module is made of."""
        kinds = (module.named_parameters, module.named_buffers)
        named = dict(pair for kind in kinds for pair in kind(remove_duplicate=False))
        known = {name: each for name, each in named.items() if id(each) in self._names}
        return dict(zip(known, self._read([*known.values()]), strict=True))

    def _read(self, tensors: list[AnyValue]) -> list[Weight]:
        """Return what tensors are made of: weights of files, or what is computed of these."""
        outputs = [Ref(self._names[id(each)]) for each in tensors]
        names = [f"output_{place}" for place in range(len(outputs))]
        graph = Graph([], self._nodes, outputs, self._sources)
        program = TorchModel(graph, [], names, self._weights, "exported program")
        model = to_relay(program, TorchImportOptions(), Report())
        body = model.main.body
        found = body.fields if isinstance(body, Tuple) else [body]
        variables = {each: model.params[each.name_hint] for each in model.main.params}
        return [
            variables[each]
            if isinstance(each, Var)
            else ComputedWeight(each, _used(each, variables))
            for each in found
        ]


def _used(expr: AnyValue, weights: Mapping[Var, Weight]) -> dict[Var, Weight]:
    from serde.relay.ir.visit import free_vars

    return {each: weights[each] for each in free_vars(expr)}
