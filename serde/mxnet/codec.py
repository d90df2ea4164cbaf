"""From files to the native model: which files belong together, and what is in them.

A model is a symbol (``m-symbol.json``) and parameters (``m-0000.params``, the
number is the epoch); SageMaker packs both into ``model.tar.gz``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from serde.core.limits import MAX_SYMBOL_JSON_BYTES
from serde.core.weights import OpenFile, Weight
from serde.errors import FormatError, OptionError
from serde.io.archives import SpooledFile, is_tar, tar_extract, tar_names
from serde.io.atomic import atomic_group, check_files
from serde.io.contained import is_file, is_there, read_small
from serde.io.pairs import (
    PARAMS_HEAD_BYTES,
    UNMARKED,
    Neighbours,
    check_pair,
    check_replaced,
    has_mark,
    params_mark,
)
from serde.io.staging import pending
from serde.mxnet.arrays import assign, weights_of
from serde.mxnet.model import Graph, MxnetModel
from serde.mxnet.params import LIST_MAGIC, read_params, write_params
from serde.mxnet.symbol_json import marked_text, parse_symbol, symbol_mark
from serde.mxnet.upgrades import input_names

__all__ = ["check_target", "companions", "detect", "detect_bytes", "load", "load_params", "save"]


_SYMBOL = "-symbol.json"
_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_EPOCH = re.compile(r"-(\d{4,9})\.params\Z")
_JSON_HEAD = re.compile(rb'\s*\{\s*"(nodes|arg_nodes|heads|node_row_ptr)"\s*:')
_LIST_HEAD = LIST_MAGIC.to_bytes(8, "little")

# Inputs of a layer that are learned, and so never inputs of a model.
_LEARNED = frozenset(
    {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "moving_avg", "parameters"}
)


def load(source: object, *, epoch: int | None = None, allow: Collection[str] = ()) -> MxnetModel:
    """Return the model of an MXNet source.

    Args:
        source: The path of a symbol or of parameters (the other one lies
            beside it); their common prefix; a directory with one symbol; a
            ``model.tar.gz``; the bytes or text of a symbol; or a pair, in any
            order, of two such paths or bytes, or of a symbol and a mapping of
            arrays.
        epoch: Which parameters to read; the highest number if left out.
        allow: Names of steps that may be taken, such as reading a pair that does not match.

    Raises:
        FormatError: A file is missing or not what it should be, or two do not belong together.
        OptionError: `source` is nothing of the kind, or contradicts `epoch`.
    """
    model = _load_any(source, epoch)
    check_pair(
        symbol_mark(model.graph), model.params_mark, model.source, model.params_source, allow
    )
    return model


def _load_any(source: object, epoch: int | None) -> MxnetModel:
    if isinstance(source, (tuple, list)):
        return _load_pair(source, epoch)
    if isinstance(source, str) and source.lstrip().startswith("{"):
        source = source.encode()
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _build(_symbol(bytes(source)), None, "<bytes>")
    if isinstance(source, (str, os.PathLike)):
        return _load_path(os.fspath(source), epoch)
    raise OptionError(f"expected a path or bytes, found {type(source).__name__}")


def load_params(source: str | os.PathLike[str] | bytes) -> dict[str, Weight]:
    """Return the weights of a parameter file, by the names that stand there.

    Raises:
        FormatError: It is not one, or has no names.
    """
    if isinstance(source, bytes):
        return dict(_pair_with_names(*read_params(source), None)[0])
    with OpenFile.open(source) as opened:
        return dict(_pair_with_names(*read_params(opened), opened.path)[0])


def detect(path: str | os.PathLike[str]) -> bool:
    """Whether `path` is a symbol, parameters, an archive or directory of them, or their prefix."""
    name = os.fspath(path)
    if not os.path.exists(name):
        return os.path.isfile(name + _SYMBOL)
    try:
        if os.path.isdir(name):
            return len(_symbols_in(name)) == 1
        head = _head(name)
    except FormatError:
        return False
    if head.startswith(_LIST_HEAD) or _JSON_HEAD.match(head):
        return True
    return is_tar(name) and _holds_model(name)


def detect_bytes(source: object) -> bool:
    """Whether `source` is the text of a symbol, or bytes of a symbol or of parameters."""
    if isinstance(source, str):
        return bool(_JSON_HEAD.match(source[:256].encode(errors="replace")))
    if not isinstance(source, (bytes, bytearray, memoryview)):
        return False
    head = bytes(source[:256])
    return head.startswith(_LIST_HEAD) or bool(_JSON_HEAD.match(head))


def companions(name: str, epoch: int | None, beside: Neighbours) -> list[str]:
    """Return the parameters that belong to a symbol, or the symbol that belongs to parameters.

    Args:
        name: Of the file that is at hand.
        epoch: Which parameters are wanted; those of the highest number if left out.
        beside: What else lies there.
    """
    if name.endswith(".params"):
        match = _EPOCH.search(name)
        stem = name[: match.start()] if match else name.removesuffix(".params")
        return [each for each in (stem + _SYMBOL, stem + ".json") if beside.has(each)][:1]
    if not name.endswith(".json"):
        return []
    stem = _stem(name)
    epochs = {
        int(match[1]): each
        for each in beside.names(f"{stem}-")
        if (match := _EPOCH.search(each)) and each[: match.start()] == stem
    }
    chosen = max(epochs, default=0) if epoch is None else epoch
    # Where nothing can be listed, such as on the web, the usual names are asked for.
    usual = [epochs.get(chosen, f"{stem}-{chosen:04d}.params")]
    if epoch is None:
        usual.append(f"{stem}.params")
    return [each for each in usual if each in epochs.values() or beside.has(each)][:1]


def _holds_model(path: str) -> bool:
    try:
        return any(name.endswith(_SYMBOL) or _EPOCH.search(name) for name in tar_names(path))
    except FormatError:
        return False


def _head(path: str) -> bytes:
    with OpenFile.open(path) as opened:
        buffer = bytearray(min(opened.size, 256))
        opened.read_into(buffer, 0)
    return bytes(buffer)


def _load_path(path: str, epoch: int | None) -> MxnetModel:
    if os.path.isdir(path):
        return _load_directory(path, epoch)
    if not os.path.exists(path):
        if os.path.isfile(path + _SYMBOL):
            return _load_symbol(path + _SYMBOL, epoch)
        raise FormatError(f"no such file, and no {os.path.basename(path)}{_SYMBOL}", path=path)
    head = _head(path)
    if path.endswith(_ARCHIVES) and not is_tar(path):
        found = head[:8].hex(" ") or "nothing"
        raise FormatError(f"expected a tar archive, found {found}", path=path, offset=0)
    if head.startswith(_LIST_HEAD):
        return _load_beside_params(path, epoch)
    if path.endswith(".params"):
        # Says what is wrong with it.
        with OpenFile.open(path) as opened:
            read_params(opened)
    if is_tar(path):
        return _load_tar(path, epoch)
    return _load_symbol(path, epoch)


def _load_directory(path: str, epoch: int | None) -> MxnetModel:
    symbols = _symbols_in(path)
    if len(symbols) != 1:
        found = ", ".join(symbols[:5]) or "none"
        raise FormatError(f"expected one *{_SYMBOL} in the directory, found {found}", path=path)
    return _load_symbol(os.path.join(path, symbols[0]), epoch)


def _symbols_in(path: str) -> list[str]:
    return sorted(name for name in _entries(path) if name.endswith(_SYMBOL))


def _entries(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError as error:
        raise FormatError(f"cannot be listed: {error.strerror}", path=folder) from None


def _load_symbol(path: str, epoch: int | None) -> MxnetModel:
    graph = _read_symbol(path)
    params, epochs = _params_beside(path, epoch)
    if params is None:
        if epoch is not None:
            found = f", but of {', '.join(map(str, epochs))}" if epochs else ""
            raise FormatError(f"no parameters of epoch {epoch} beside it{found}", path=path)
        return _build(graph, None, path)
    with OpenFile.open(params) as opened:
        graph = _graph_of_pair(graph, path, opened)
        return replace(_build(graph, opened, path), epochs=epochs)


def _params_beside(path: str, epoch: int | None) -> tuple[str | None, tuple[int, ...]]:
    """Return the parameters of the symbol at `path`, of `epoch` or the newest, and all epochs."""
    folder, name = os.path.split(path)
    stem = _stem(name)
    epochs = {
        int(match[1]): entry
        for entry in _entries(folder or ".")
        if (match := _EPOCH.search(entry)) and entry[: match.start()] == stem
    }
    chosen = max(epochs, default=None) if epoch is None else epoch
    if chosen in epochs:
        return os.path.join(folder, epochs[chosen]), tuple(sorted(epochs))
    plain = os.path.join(folder, stem + ".params")
    return plain if epoch is None and is_file(plain) else None, tuple(sorted(epochs))


def _load_beside_params(path: str, epoch: int | None) -> MxnetModel:
    match = _EPOCH.search(path)
    if epoch is not None and match and int(match[1]) != epoch:
        raise OptionError(f"{path} is not of epoch {epoch}")
    stem = path[: match.start()] if match else path.removesuffix(".params")
    symbol = next((p for p in (stem + _SYMBOL, stem + ".json") if is_file(p)), None)
    if path.endswith(_SYMBOL):
        message = "expected a symbol's JSON, found parameters: the two files may be swapped"
        raise FormatError(message, path=path, offset=0)
    if symbol is None:
        expected = os.path.basename(stem) + _SYMBOL
        return _parameters_alone(path, f"parameters alone are no model: no {expected} beside them")
    graph = _read_symbol(symbol)
    with OpenFile.open(path) as opened:
        return _build(_graph_of_pair(graph, symbol, opened), opened, symbol)


def _graph_of_pair(graph: Graph, path: str, params: OpenFile) -> Graph:
    """Return the graph at a path, or that which a killed run had finished with the parameters."""
    unmarked = params.size < PARAMS_HEAD_BYTES or params_mark(params) == UNMARKED
    if unmarked or params_mark(params) == symbol_mark(graph):
        return graph
    finished = pending(Path(os.path.abspath(path)))
    return graph if finished is None else _read_symbol(os.fspath(finished))


def _parameters_alone(path: str, lacks: str) -> MxnetModel:
    """Return a model without a graph, which can be looked at, but not converted."""
    with OpenFile.open(path) as opened:
        model = _build(Graph((), ()), opened, path)
    return replace(model, lacks=lacks)


def _load_pair(pair: Sequence[object], epoch: int | None) -> MxnetModel:
    if len(pair) != 2:
        raise OptionError(f"expected a symbol and parameters, found {len(pair)} items")
    first, second = pair
    if isinstance(second, (Mapping, tuple)) or second is None:
        return _with_arrays(first, second)
    sources = [_source(item) for item in pair]
    if epoch is not None:
        raise OptionError("an epoch chooses among files, but the parameters are given")
    if _is_params(sources[0]) and not _is_params(sources[1]):
        sources.reverse()
    symbol, params = sources
    graph = _symbol(symbol) if isinstance(symbol, bytes) else _read_symbol(symbol)
    where = "<bytes>" if isinstance(symbol, bytes) else symbol
    if isinstance(params, bytes):
        return _build(graph, params, where)
    with OpenFile.open(params) as opened:
        return _build(graph, opened, where)


def _with_arrays(symbol: object, params: object) -> MxnetModel:
    source = _source(symbol)
    graph = _symbol(source) if isinstance(source, bytes) else _read_symbol(source)
    arg, aux = assign(graph, weights_of(params))
    where = "<bytes>" if isinstance(source, bytes) else source
    return _require_own_parameters(MxnetModel(graph, arg, aux, source=where))


def _source(item: object) -> str | bytes:
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item)
    if isinstance(item, str) and item.lstrip().startswith("{"):
        return item.encode()
    if isinstance(item, (str, os.PathLike)):
        path = os.fspath(item)
        prefix = not os.path.exists(path) and os.path.isfile(path + _SYMBOL)
        return path + _SYMBOL if prefix else path
    raise OptionError(f"expected a path or bytes, found {type(item).__name__}")


def _is_params(source: str | bytes) -> bool:
    head = source[:8] if isinstance(source, bytes) else _head(source)
    return head.startswith(_LIST_HEAD)


def _load_tar(path: str, epoch: int | None) -> MxnetModel:
    members = tar_extract(path, lambda name: name.endswith(_SYMBOL) or _is_epoch(name, epoch))
    symbols = [name for name in members if name.endswith(_SYMBOL)]
    if len(symbols) != 1:
        raise FormatError(_wrong_archive(path, symbols), path=path)
    stem = symbols[0].removesuffix(_SYMBOL)
    epochs = {
        int(match[1]): name
        for name in members
        if (match := _EPOCH.search(name)) and name[: match.start()] == stem
    }
    if epoch is not None and epoch not in epochs:
        raise FormatError(f"no parameters of epoch {epoch} beside {symbols[0]}", path=path)
    graph = _symbol(_small(members[symbols[0]]), f"{path}:{symbols[0]}")
    params = members[epochs[max(epochs)]] if epochs else None
    chosen = max(epochs, default=None)
    return replace(_build(graph, params, path), epoch=chosen, epochs=tuple(sorted(epochs)))


def _is_epoch(name: str, epoch: int | None) -> bool:
    match = _EPOCH.search(name)
    return match is not None and epoch in (None, int(match[1]))


def _wrong_archive(path: str, symbols: Sequence[str]) -> str:
    if symbols:
        return f"expected one *{_SYMBOL} in the archive, found {', '.join(symbols)}"
    names = list(tar_names(path))
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    message = f"no *{_SYMBOL} in the archive, which holds {shown or 'no files'}"
    if any(Path(name).name == "model_algo-1" for name in names):
        message += (
            "; model_algo-1 holds the parameters of SageMaker's semantic segmentation alone: "
            "build the GluonCV network, load them into it and convert that"
        )
    return message


def _small(member: SpooledFile) -> bytes:
    if member.size > MAX_SYMBOL_JSON_BYTES:
        message = f"expected at most {MAX_SYMBOL_JSON_BYTES} bytes of JSON, found {member.size}"
        raise FormatError(message, path=member.path)
    return member.read()


def _read_symbol(path: str) -> Graph:
    expected = f"symbol JSON of at most {MAX_SYMBOL_JSON_BYTES} bytes"
    return _symbol(read_small(path, MAX_SYMBOL_JSON_BYTES, expected), path)


def _symbol(data: bytes, path: str | None = None) -> Graph:
    if data.startswith(_LIST_HEAD):
        message = "expected a symbol's JSON, found a parameter file"
        raise FormatError(message, path=path, offset=0)
    if data.lstrip()[:1] not in (b"{", b"["):
        found = data[:8].hex(" ") or "nothing"
        raise FormatError(f"expected a symbol's JSON, found {found}", path=path, offset=0)
    return parse_symbol(data, path=path)


def _build(graph: Graph, params: OpenFile | bytes | None, source: str) -> MxnetModel:
    if params is None:
        return _require_own_parameters(MxnetModel(graph, source=source))
    path = params.path if isinstance(params, OpenFile) else None
    named, empty = _pair_with_names(*read_params(params), path)
    arg, aux = assign(graph, named, path=path)
    match = _EPOCH.search(path or "")
    epoch = int(match[1]) if match else None
    mark = params_mark(params)
    model = MxnetModel(graph, arg, aux, empty, source, path, params_mark=mark, epoch=epoch)
    return _require_own_parameters(model, path)


def _pair_with_names(
    names: Sequence[str] | None, arrays: Sequence[Weight | None], path: str | None
) -> tuple[list[tuple[str, Weight]], frozenset[str]]:
    """Return the arrays with their names, and the names without an array."""
    if names is None:
        raise FormatError("a list of arrays without names is no set of parameters", path=path)
    found = list(zip(names, arrays, strict=True))
    named = [(name, array) for name, array in found if array is not None]
    empty = (name for name, array in found if array is None)
    return named, frozenset(n.removeprefix("arg:").removeprefix("aux:") for n in empty)


def _require_own_parameters(model: MxnetModel, params: str | None = None) -> MxnetModel:
    """Return the model if some of the parameters given are those of its layers.

    What is missing is for the conversion to report: with a shape it is an input. Parameters of
    which none belongs to the graph are those of another model.
    """
    missing = _missing_weights(model)
    given = {*model.arg, *model.aux}
    if not missing or not given or given & {node.name for node in model.graph.variables}:
        return model
    shown = ", ".join(missing[:3]) + (", ..." if len(missing) > 3 else "")
    found = ", ".join(sorted(given)[:3])
    raise FormatError(
        f"parameters ({found}, ...) of another model or from Block.save_parameters; "
        f"expected {shown}; HybridBlock.export writes names that fit",
        path=params,
    )


def _missing_weights(model: MxnetModel) -> list[str]:
    nodes = model.graph.nodes
    missing: dict[str, None] = {}
    for node in nodes:
        names = input_names(node.op, node.attrs) or ()
        for entry, name in zip(node.inputs, names, strict=False):
            source = nodes[entry.node]
            if name in _LEARNED and source.is_variable and model.param(source.name) is None:
                missing[source.name] = None
    return list(missing)


def save(
    model: MxnetModel,
    path: Path,
    *,
    epoch: int = 0,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write ``<prefix>-symbol.json`` and, beside it, ``<prefix>-NNNN.params``.

    Args:
        model: The model.
        path: Name of the symbol's file.
        epoch: The number in the name of the parameter file.
        sources: Files that must not be written over.
        before_commit: Called with the finished symbol; if it raises, nothing stays.

    Raises:
        OptionError: `path` cannot be a new file, or is a source.
        Unsupported: MXNet has no dtype of a parameter.
        FormatError: A file that holds weights changed meanwhile.
    """
    params = _params_path(path, epoch)
    named = {f"arg:{name}": weight for name, weight in model.arg.items()}
    named |= {f"aux:{name}": weight for name, weight in model.aux.items()}
    ranges = (weight.source for weight in named.values())
    files = {each.path for each in ranges if each is not None and each.handle is None}

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[-1])

    text, mark = marked_text(model.graph)
    known: list[str | Path] = [*sources, *files]
    group = atomic_group([params, path], sources=known, restore=True, before_commit=check)
    with group as staged:
        write_params(named, staged[0], mark=mark)
        staged[-1].write_text(text, encoding="utf-8")
    return path


def _params_path(path: Path, epoch: int) -> Path:
    """Return where the parameters of a symbol are written."""
    return path.with_name(f"{_stem(path.name)}-{epoch:04d}.params")


def _stem(symbol: str) -> str:
    """Return what the name of a symbol shares with those of its parameters."""
    return (
        symbol.removesuffix(_SYMBOL) if symbol.endswith(_SYMBOL) else symbol.removesuffix(".json")
    )


def check_target(
    path: str | os.PathLike[str],
    *,
    epoch: int = 0,
    sources: Sequence[Path] = (),
    overwrite: bool = False,
) -> None:
    """Refuse what :func:`save` could not write, and originals that it would replace.

    Originals are a parameter file of the name that is to be written, and a symbol with
    parameters of any epoch beside it, if serde did not write them.

    Raises:
        OptionError: There is a reason.
    """
    params = _params_path(Path(path), epoch)
    check_files([params, path], sources=sources)
    originals = [params] if is_there(params) and not has_mark(params, _LIST_HEAD) else []
    if _is_original(Path(path)):
        originals.insert(0, Path(path))
    check_replaced(originals, overwrite=overwrite)


def _is_original(symbol: Path) -> bool:
    """Whether there is a symbol with parameters of which serde wrote neither."""
    try:
        marked = symbol_mark(_read_symbol(os.fspath(symbol))) != UNMARKED
    except FormatError:
        return False
    beside, _ = _params_beside(os.fspath(symbol), None)
    return not marked and beside is not None and not has_mark(beside, _LIST_HEAD)
