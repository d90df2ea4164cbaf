"""From files to the native model and back: which files belong together, and what is in them.

A model is a graph, as text (``net.relay``) or as TVM's JSON (``net.json``),
and the parameters beside it (``net.params``). Text that holds its weights as
constants needs no parameters.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any as AnyValue

from serde.core.limits import MAX_GRAPH_TEXT_BYTES
from serde.core.weights import OpenFile, Weight, as_weight
from serde.errors import FormatError, OptionError
from serde.io.atomic import atomic_group, check_files
from serde.io.contained import is_file, is_there, read_small
from serde.io.pairs import (
    UNMARKED,
    Neighbours,
    check_pair,
    check_replaced,
    has_mark,
    mark_of,
    params_mark,
)
from serde.io.staging import pending
from serde.io.tvm_params import PARAMS_HEAD, read_params, write_params
from serde.relay.ir import Function, IRModule, ModelMeta, RelayModel, TensorType, accepts
from serde.relay.text.names import spelling
from serde.relay.text.parser import fromtext
from serde.relayfile.json_graph import read_graph
from serde.relayfile.json_writer import write_graph
from serde.relayfile.live import infer_types, rename_apart
from serde.relayfile.model import RelayProgram

__all__ = ["check_target", "companions", "detect", "is_live", "load", "save"]

_GRAPHS = (".relay", ".json", ".txt")
_TEXT_HEAD = re.compile(rb"(?:\s|//[^\n]*\n)*#\[version[ \t]*=")
_JSON_HEAD = re.compile(rb'\s*\{\s*"root"\s*:')
_HEAD_BYTES = 4096
# The beginnings of a text and of JSON of a pair.
_MARK = re.compile(
    rb"#\[version[^\n]*\]\n// serde-pair: ([0-9a-f]{16})\n"
    rb'|\{\s*"root": \d+,\s*"attrs": \{"serde_pair": "([0-9a-f]{16})"'
)


def is_live(source: object) -> bool:
    """Whether `source` is a module, a function or a model in memory, perhaps with parameters."""
    if isinstance(source, (tuple, list)) and len(source) == 2 and isinstance(source[1], Mapping):
        source = source[0]
    return isinstance(source, (IRModule, Function, RelayModel))


def detect(path: str | os.PathLike[str]) -> bool:
    """Whether `path` holds Relay text, TVM's JSON or parameters, or is their common prefix."""
    name = os.fspath(path)
    if not os.path.exists(name):
        return os.path.isfile(f"{name}.relay")
    try:
        head = _head(name)
    except FormatError:
        return False
    return _is_params(head) or _is_graph(head)


def load(source: object, params: object = None, *, allow: Collection[str] = ()) -> RelayProgram:
    """Return the native model of a Relay source.

    Args:
        source: The path of a graph or of parameters (the other one lies
            beside it); their common prefix; text or bytes of a graph; a
            module, function or model in memory; or a pair, in any order, of a
            graph and parameters.
        params: Parameters that belong to `source`: a path, bytes, or arrays by name.
        allow: Names of steps that may be taken, such as reading a pair that does not match.

    Raises:
        FormatError: A file is missing or not what it should be, or two do not belong together.
        ParseError: The text does not parse, or holds what the pivot lacks.
        OptionError: `source` is nothing of the kind.
    """
    if params is not None:
        return _load_pair((source, params), allow)
    if isinstance(source, (tuple, list)):
        return _load_pair(source, allow)
    if isinstance(source, RelayModel):
        return _from_memory(source.mod, source.params, source.meta)
    if isinstance(source, (IRModule, Function)):
        return _from_memory(source, {})
    content = _content(source)
    if isinstance(content, bytes):
        return _bind_weights(_graph(content, None), {}, "<bytes>")
    return _load_path(content, allow)


def companions(path: Path, beside: Neighbours) -> list[str]:
    """Return the parameters beside a graph, or the graph beside parameters, if there are any."""
    stem = path.stem
    if path.name.endswith(".params") or _is_params(_head(os.fspath(path))):
        return [each for end in _GRAPHS if beside.has(each := stem + end)][:1]
    return [each for each in (f"{stem}.params",) if beside.has(each)]


def _load_path(path: str, allow: Collection[str]) -> RelayProgram:
    if not os.path.exists(path) and os.path.isfile(f"{path}.relay"):
        path = f"{path}.relay"
    stem = os.path.splitext(path)[0]
    if not _is_params(_head(path)) and not path.endswith(".params"):
        beside = f"{stem}.params"
        if is_file(beside) and _is_params(_head(beside)):
            return _load_files(path, beside, allow)
        return _bind_weights(_read_graph(path), {}, path)
    graph = next((stem + end for end in _GRAPHS if is_file(stem + end)), None)
    if graph is None:
        with OpenFile.open(path) as opened:
            read_params(opened)  # Says what is wrong with it.
        expected = os.path.basename(stem) + _GRAPHS[0]
        raise FormatError(f"parameters alone are no model: no {expected} beside them", path=path)
    return _load_files(graph, path, allow)


def _load_files(graph: str | bytes, params: str | bytes, allow: Collection[str]) -> RelayProgram:
    """Return the model of a graph and parameters, both as a path or as bytes."""
    source = "<bytes>" if isinstance(graph, bytes) else graph
    path = None if isinstance(params, bytes) else params
    if isinstance(params, bytes):
        weights, mark = read_params(params), params_mark(params)
    else:
        with OpenFile.open(params) as opened:
            weights, mark = read_params(opened), params_mark(opened)
    if isinstance(graph, str) and _text_mark(graph) != mark:
        # What a killed run had finished with the parameters is what it was about to put there.
        graph = os.fspath(pending(Path(os.path.abspath(graph))) or graph)
    check_pair(_text_mark(graph), mark, source, path, allow)
    mod = _graph(graph, None) if isinstance(graph, bytes) else _read_graph(graph)
    return _bind_weights(mod, weights, source, path)


def _text_mark(graph: str | bytes) -> int:
    """Return the mark of a text, or of that in a file."""
    found = _MARK.match(graph if isinstance(graph, bytes) else _head(graph))
    return UNMARKED if found is None else int(found[1] or found[2], 16)


def _load_pair(pair: Sequence[object], allow: Collection[str]) -> RelayProgram:
    if len(pair) != 2:
        raise OptionError(f"expected a graph and parameters, found {len(pair)} items")
    first, second = pair
    if isinstance(first, Mapping) or _is_parameters(first):
        first, second = second, first
    if isinstance(first, RelayModel):
        raise OptionError("a RelayModel has its own parameters; give its module instead")
    if not isinstance(first, (IRModule, Function)) and not isinstance(second, Mapping):
        return _load_files(_content(first), _content(second), allow)
    weights, path = _weights_of(second)
    if isinstance(first, (IRModule, Function)):
        return _from_memory(first, weights, path=path)
    content = _content(first)
    if isinstance(content, bytes):
        return _bind_weights(_graph(content, None), weights, "<bytes>", path)
    return _bind_weights(_read_graph(content), weights, content, path)


def _weights_of(source: object) -> tuple[Mapping[str, Weight], str | None]:
    """Return parameters by name, and the file that they are in."""
    if isinstance(source, Mapping):
        return {name: as_weight(value) for name, value in source.items()}, None
    content = _content(source)
    if isinstance(content, bytes):
        return read_params(content), None
    with OpenFile.open(content) as opened:
        return read_params(opened), content


def _from_memory(
    source: IRModule | Function,
    params: Mapping[str, AnyValue],
    meta: ModelMeta | None = None,
    path: str | None = None,
) -> RelayProgram:
    """Return a module in memory with its parameters, which may be arrays of any framework."""
    mod = source if isinstance(source, IRModule) else IRModule.from_expr(source)
    weights = {name: as_weight(value) for name, value in params.items()}
    program = _bind_weights(mod, weights, "<memory>", path)
    return program if meta is None else replace(program, meta=meta)


def _is_parameters(source: object) -> bool:
    if not isinstance(source, (str, bytes, bytearray, memoryview, os.PathLike)):
        return False
    content = _content(source)
    return _is_params(content[:8] if isinstance(content, bytes) else _head(content))


def _content(source: object) -> str | bytes:
    """Return the path, or the bytes of text or bytes given."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return bytes(source)
    if isinstance(source, str) and source.lstrip()[:1] in ("#", "{"):
        return source.encode()
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    raise OptionError(f"expected a path, text or a module, found {type(source).__name__}")


def _head(path: str) -> bytes:
    with OpenFile.open(path) as opened:
        buffer = bytearray(min(opened.size, _HEAD_BYTES))
        opened.read_into(buffer, 0)
    return bytes(buffer)


def _is_params(head: bytes) -> bool:
    return head.startswith(PARAMS_HEAD)


def _is_graph(head: bytes) -> bool:
    return _TEXT_HEAD.match(head) is not None or _JSON_HEAD.match(head) is not None


def _read_graph(path: str) -> IRModule:
    expected = f"a graph of at most {MAX_GRAPH_TEXT_BYTES} bytes"
    return _graph(read_small(path, MAX_GRAPH_TEXT_BYTES, expected), path)


def _graph(data: bytes, path: str | None) -> IRModule:
    if data.lstrip()[:1] == b"{":
        return read_graph(data, path=path)
    if _TEXT_HEAD.match(data[:_HEAD_BYTES]) is None:
        found = data[:8].hex(" ") or "nothing"
        message = f'expected text that begins with #[version = "0.0.5"], found {found}'
        raise FormatError(message, path=path, offset=0)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormatError("text that is not UTF-8", path=path, offset=error.start) from None
    return fromtext(text, name=path or "<text>")


def _bind_weights(
    mod: IRModule, given: Mapping[str, Weight], source: str, path: str | None = None
) -> RelayProgram:
    """Return the module with each parameter under the name of its variable.

    TVM prints some names in another spelling than its parameter file has.
    """
    if "main" not in mod:
        raise FormatError("the module has no function main", path=source)
    mod = infer_types(rename_apart(mod, given), given)
    variables = {param.name_hint: param for param in mod["main"].params}
    # What a variable has itself is no other spelling of another's name.
    spelled: dict[str, str | None] = {}
    for name in given:
        if name not in variables:
            other = spelling(name)
            spelled[other] = None if other in spelled else name
    owners = {
        variable: variable if variable in given else spelled.get(variable) for variable in variables
    }
    params = {variable: given[name] for variable, name in owners.items() if name is not None}
    if given and variables and not params:
        shown = ", ".join([*given][:3])
        raise FormatError(
            f"parameters of another model ({shown}): main has none of them", path=path
        )
    for name, weight in params.items():
        declared = variables[name].type
        found = TensorType(weight.shape, weight.dtype)
        if declared is None or not accepts(declared, found):
            message = f"parameter {name}: expected {declared!r}, found {found!r}"
            raise FormatError(message, path=path)
    used = set(owners.values())
    unused = tuple(name for name in given if name not in used)
    return RelayProgram(mod, params, unused=unused, source=source)


def save(
    model: RelayProgram,
    path: Path,
    *,
    sources: Sequence[Path] = (),
    before_commit: Callable[[Path], None] | None = None,
) -> Path:
    """Write the parameter file, then the text beside it, or TVM's JSON if `path` says so.

    The parameter file is there even without parameters, so that one of another
    model never belongs to this text.

    Raises:
        OptionError: `path` cannot be a new file, or is a source.
        FormatError: A file that holds weights changed meanwhile.
        RelayError: TVM's JSON cannot hold something of the module.
    """
    ranges = (weight.source for weight in model.params.values())
    files = {each.path for each in ranges if each is not None and each.handle is None}

    def check(staged: tuple[Path, ...]) -> None:
        if before_commit is not None:
            before_commit(staged[-1])

    is_json = path.suffix == ".json"
    text = (write_graph(model.mod) if is_json else model.text).encode()
    mark = mark_of(text)
    marked = _mark_json(text, mark) if is_json else _mark_text(text, mark)
    group = atomic_group(
        [_params_path(path), path], sources=[*sources, *files], restore=True, before_commit=check
    )
    with group as staged:
        write_params(model.params, staged[0], mark=mark)
        staged[-1].write_bytes(marked)
    return path


def _mark_text(text: bytes, mark: int) -> bytes:
    version, _, rest = text.partition(b"\n")
    return b"%s\n// serde-pair: %016x\n%s" % (version, mark, rest)


def _mark_json(text: bytes, mark: int) -> bytes:
    """Put the facts about the graph, which are its last field, behind the root."""
    nodes, separator, facts = text.rpartition(b', \n  "attrs": {')
    root, _, nodes = nodes.partition(b", \n")
    return b'%s%s"serde_pair": "%016x", %s, \n%s\n}' % (
        root, separator, mark, facts.removesuffix(b"\n}"), nodes,
    )  # fmt: skip


def _params_path(path: Path) -> Path:
    """Return where the parameters of a text are written."""
    params = path.with_suffix(".params")
    if params == path:
        raise OptionError(f"{path}: that is the name of the parameter file; name the text")
    return params


def check_target(
    path: str | os.PathLike[str], *, sources: Sequence[Path] = (), overwrite: bool = False
) -> None:
    """Refuse what :func:`save` could not write, and a parameter file that is an original.

    Raises:
        OptionError: There is a reason.
    """
    params = _params_path(Path(path))
    check_files([params, path], sources=sources)
    originals = [params] if is_there(params) and not has_mark(params, PARAMS_HEAD) else []
    check_replaced(originals, overwrite=overwrite)
