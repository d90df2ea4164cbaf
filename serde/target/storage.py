"""A split model as a folder or a zip archive: a manifest, each region as ONNX, the rest as Relay.

The manifest says what runs when; nothing in it is believed before it was compared with the files
that it names. All files lie in the folder itself. Of an archive nothing is unpacked.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any as AnyValue, Final, Literal

from serde.core import OpenFile, Weight, dataclass, parse_json
from serde.core.limits import MAX_GRAPH_TEXT_BYTES, MAX_RANK, MAX_SPLIT_MANIFEST_BYTES
from serde.errors import FormatError, RelayError
from serde.io.atomic import atomic_write, check_files, naming
from serde.io.contained import member_path, read_small
from serde.io.directories import atomic_directory, check_directory
from serde.io.fingerprint import digest_of
from serde.io.staging import staging_directory
from serde.io.tvm_params import read_params, write_params
from serde.io.zips import Archive, write_archive
from serde.onnx import codec
from serde.onnx.elements import ELEMENTS
from serde.onnx.interface import declared_shape
from serde.onnx.reader import load_opened
from serde.relay.ir import Function, GlobalVar, IRModule, ModelMeta, RelayModel, SymDim, value_types
from serde.relay.ir.foreign import REGION_FRAMEWORK, foreign_calls
from serde.relay.ir.types import TensorType, Type
from serde.relay.text.parser import fromtext
from serde.relay.transform.infer_type import InferType
from serde.target.program import Port, Program, Step
from serde.target.regions import RegionModule

__all__ = ["Stored", "check_target", "host_module", "load_split", "manifest_of", "save_split"]

MANIFEST: Final = "manifest.json"
FORMAT: Final = "serde.split"
VERSION: Final = 1
DIGESTS: Final = "sha256"
"""Key of the digests of all files by name, which folders of serde 1.0 do not have."""
_HOST: Final = "host.relay"
_PARAMS: Final = "host.params"
_PLAIN_NAME: Final = re.compile("[A-Za-z0-9_-]{1,100}")


@dataclass(slots=True, eq=False)
class Stored:
    """What a folder holds."""

    program: Program
    regions: Mapping[str, RegionModule]
    hosts: Mapping[str, RelayModel]
    others: Mapping[GlobalVar, Function]
    opset: int


def host_module(stored: Stored) -> IRModule:
    """Return the parts of the host, and what they call, as one module."""
    functions: dict[GlobalVar, Function] = {}
    for name, part in stored.hosts.items():
        functions[GlobalVar(name, part.main.type)] = part.main
    return IRModule({**functions, **stored.others}, checked=True)


def manifest_of(stored: Stored) -> dict[str, AnyValue]:
    """Return the manifest of a folder, without the digests of its files."""
    program = stored.program
    return {
        "format": FORMAT,
        "version": VERSION,
        "opset": stored.opset,
        "inputs": list(map(_port_entry, program.inputs)),
        "outputs": list(program.outputs),
        "results": list(program.results),
        "steps": [
            {
                "kind": step.kind,
                "name": step.name,
                "inputs": list(step.inputs),
                "outputs": list(step.outputs),
            }
            for step in program.steps
        ],
        "regions": [
            {
                "name": name,
                "file": file,
                "inputs": list(map(_port_entry, region.inputs)),
                "outputs": list(map(_port_entry, region.outputs)),
            }
            for file, (name, region) in zip(
                _file_names(stored), stored.regions.items(), strict=True
            )
        ],
        "hosts": [
            {
                "name": name,
                "weights": [p.name_hint for p in part.main.params if p.name_hint in part.params],
            }
            for name, part in stored.hosts.items()
        ],
    }


def _port_entry(port: Port) -> dict[str, AnyValue]:
    shape = [
        dim if isinstance(dim, int) else dim.name if isinstance(dim, SymDim) else None
        for dim in port.type.shape
    ]
    return {"name": port.name, "dtype": port.type.dtype, "shape": shape}


def _file_names(stored: Stored) -> list[str]:
    """Return the names of the regions' files: their own where any file system takes them."""
    taken: set[str] = set()
    found = []
    for number, name in enumerate(stored.regions):
        plain = _PLAIN_NAME.fullmatch(name) and name.lower() not in taken
        stem = name if plain else f"region.{number}"
        taken.add(stem.lower())
        found.append(f"{stem}.onnx")
    return found


def save_split(stored: Stored, path: str | os.PathLike[str]) -> Path:
    """Write the folder or, where the path ends in .zip, an archive of it; whole or not at all.

    Raises:
        OptionError: The path cannot be written, or holds something else.
        FormatError: A file that weights lie in changed meanwhile.
    """
    sources, target = _source_paths(stored), Path(path)
    if not _is_archive(path):
        with atomic_directory(path, sources=sources, is_package=is_folder) as staged:
            _write_files(stored, staged, path)
        return target
    with staging_directory(target.parent) as staging, naming(target, staging.parent):
        _write_files(stored, staging, path)
        with atomic_write(target, sources=sources) as file:
            write_archive(file, staging)
    return target


def check_target(path: str | os.PathLike[str], sources: Iterable[str | os.PathLike[str]]) -> None:
    """Refuse a path that :func:`save_split` could not write to, before there is anything.

    Raises:
        OptionError: It cannot be written, holds something else or one of the `sources`.
    """
    if _is_archive(path):
        check_files([path], sources=sources)
    else:
        check_directory(path, sources=sources, is_package=is_folder)


def _is_archive(path: str | os.PathLike[str]) -> bool:
    return Path(path).suffix.lower() == ".zip"


def _host_weights(stored: Stored) -> dict[str, Weight]:
    return {name: w for part in stored.hosts.values() for name, w in part.params.items()}


def _source_paths(stored: Stored) -> set[str]:
    ranges = [weight.source for weight in _host_weights(stored).values()]
    sources = {each.path for each in ranges if each is not None and each.handle is None}
    return sources.union(*(codec.source_paths(each.native) for each in stored.regions.values()))


def _write_files(stored: Stored, folder: Path, path: str | os.PathLike[str]) -> None:
    for file, region in zip(_file_names(stored), stored.regions.values(), strict=True):
        codec.save(region.native, folder / file)
    if stored.hosts:
        (folder / _HOST).write_text(host_module(stored).astext(), encoding="utf-8")
        write_params(_host_weights(stored), folder / _PARAMS)
    try:
        written = _Files("", lambda name: OpenFile.open(folder / name))
        digests = {each.name: written.digest(each.name) for each in sorted(folder.iterdir())}
    except FormatError as error:
        raise FormatError("what was written cannot be read again", path=path) from error
    text = json.dumps({**manifest_of(stored), DIGESTS: digests}, indent=1)
    (folder / MANIFEST).write_text(text + "\n", encoding="utf-8")


def is_folder(path: Path) -> bool:
    """Whether a directory is a split model."""
    return (path / MANIFEST).is_file()


def load_split(path: str | os.PathLike[str]) -> Stored:
    """Return what a folder or an archive of it holds; weights stay in its files.

    Raises:
        FormatError: It is neither, or not sound.
    """
    root = os.fspath(path)
    if os.path.isdir(root):
        text = read_small(member_path(root, MANIFEST), MAX_SPLIT_MANIFEST_BYTES)
        return _load(_Files(root, lambda name: OpenFile.open(member_path(root, name))), text)
    with Archive(root) as archive:
        text = archive.read(MANIFEST, MAX_SPLIT_MANIFEST_BYTES)
        return _load(_Files(root, lambda name: archive.range(name).window()), text)


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a folder, or those of an archive by the same names."""

    root: str
    open: Callable[[str], OpenFile]

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a file."""
        with self.open(name) as opened:
            return digest_of(opened, "sha256")

    def check_digests(self, manifest: _Table) -> None:
        """Refuse files that are not those that were written, where the manifest has digests."""
        known = manifest.digests()
        if known is None and not os.path.isdir(self.root):
            raise manifest.fault(f"{DIGESTS}: expected digests by file, found none")
        used = [each.text("file") for each in manifest.tables("regions")]
        used += [_HOST, _PARAMS] if manifest.tables("hosts") else []
        for name in () if known is None else dict.fromkeys([*used, *known]):
            expected, found = (known or {}).get(name), self.digest(name)
            if found != expected:
                message = f"{DIGESTS}: expected {expected}, found {found}"
                raise FormatError(message[:300], path=f"{self.root}/{name}")


def _load(files: _Files, text: bytes) -> Stored:
    where = f"{files.root}/{MANIFEST}"
    try:
        manifest = _Table(parse_json(text.decode("utf-8")), where)
    except ValueError as error:
        raise FormatError(f"no JSON: {error}", path=where) from None
    manifest.require("format", FORMAT)
    manifest.require("version", VERSION)
    files.check_digests(manifest)
    regions = {
        table.text("name"): _read_region(files, table) for table in manifest.tables("regions")
    }
    hosts, others = _read_hosts(files, manifest.tables("hosts"))
    steps = tuple(map(_read_step, manifest.tables("steps")))
    program = Program(
        inputs=tuple(map(_read_port, manifest.tables("inputs"))),
        results=manifest.texts("results"),
        outputs=manifest.texts("outputs"),
        steps=steps,
    )
    _check_program(program, regions, hosts, manifest)
    return Stored(program, regions, hosts, others, manifest.number("opset"))


class _Table:
    """An object of the manifest, whose fields are checked when they are read."""

    def __init__(self, value: AnyValue, path: str) -> None:
        if not isinstance(value, dict):
            raise FormatError(f"expected an object, found {value!r}"[:200], path=path)
        self._value = value
        self.path = path

    def _get(self, key: str, kind: type, what: str) -> AnyValue:
        value = self._value.get(key)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.fault(f"{key}: expected {what}, found {value!r}"[:200])
        return value

    def fault(self, message: str) -> FormatError:
        """Return an error that names the manifest."""
        return FormatError(message, path=self.path)

    def require(self, key: str, wanted: AnyValue) -> None:
        """Refuse another value."""
        if self._value.get(key) != wanted:
            found = self._value.get(key)
            raise self.fault(f"{key}: expected {wanted!r}, found {found!r}"[:200])

    def text(self, key: str, *, least: int = 1) -> str:
        """Return a text of so many characters, or more."""
        value: str = self._get(key, str, "a text")
        if len(value) < least:
            raise self.fault(f"{key}: expected a text, found nothing")
        return value

    def number(self, key: str) -> int:
        """Return a number from 0 on."""
        value: int = self._get(key, int, "a number")
        if value < 0:
            raise self.fault(f"{key}: expected a number from 0 on, found {value}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts."""
        items = self._get(key, list, "a list of texts")
        if not all(isinstance(item, str) for item in items):
            raise self.fault(f"{key}: expected a list of texts")
        return tuple(items)

    def tables(self, key: str) -> list[_Table]:
        """Return a list of objects."""
        items = self._get(key, list, "a list of objects")
        return [_Table(item, self.path) for item in items]

    def digests(self) -> Mapping[str, AnyValue] | None:
        """Return the digests of files by name; None where there are none."""
        return self._get(DIGESTS, dict, "digests by file") if DIGESTS in self._value else None

    def shape(self, key: str) -> list[AnyValue]:
        """Return a shape: lengths, names of symbols, and nulls."""
        items = self._get(key, list, "a shape")
        for item in items:
            known = item is None or (isinstance(item, str) and item)
            if not known and (type(item) is not int or item < 0):
                raise self.fault(f"{key}: expected a length, a name or null, found {item!r}"[:200])
        if len(items) > MAX_RANK:
            raise self.fault(f"{key}: expected at most {MAX_RANK} axes, found {len(items)}")
        return ["?" if item is None else item for item in items]


def _read_port(table: _Table) -> Port:
    try:
        type_ = TensorType(table.shape("shape"), table.text("dtype"))
    except (TypeError, ValueError, RelayError) as error:
        raise table.fault(f"{table.text('name')}: {error}") from None
    return Port(table.text("name", least=0), type_)


def _read_step(table: _Table) -> Step:
    told = table.text("kind")
    kind: Literal["host", "region"] = "host" if told == "host" else "region"
    if told != kind:
        raise table.fault(f"kind: expected host or region, found {told!r}")
    return Step(kind, table.text("name"), table.texts("inputs"), table.texts("outputs"))


def _read_region(files: _Files, table: _Table) -> RegionModule:
    name = table.text("file")
    with files.open(name) as opened:
        native = load_opened(opened, files.open)
    inputs = [_read_port(each) for each in table.tables("inputs")]
    outputs = [_read_port(each) for each in table.tables("outputs")]
    graph = native.proto.graph
    weights = {each.name for each in graph.initializer} | set(native.weights)
    for what, ports, values in (
        ("inputs", inputs, [each for each in graph.input if each.name not in weights]),
        ("outputs", outputs, list(graph.output)),
    ):
        found = list(map(_declared, values))
        if [_comparable(port) for port in ports] != found:
            message = f"{what} are not those that the manifest tells"
            raise FormatError(message, path=f"{files.root}/{name}")
    path = Path(files.root, name) if os.path.isdir(files.root) else None
    return RegionModule(table.text("name"), native, inputs, outputs, path)


def _comparable(port: Port) -> AnyValue:
    shape = [dim if isinstance(dim, int) else None for dim in port.type.shape]
    return port.name, port.type.dtype, shape


def _declared(value: AnyValue) -> AnyValue:
    shape = declared_shape(value.type)
    element = ELEMENTS.get(value.type.tensor_type.elem_type)
    dims = None if shape is None else [dim if isinstance(dim, int) else None for dim in shape]
    return value.name, None if element is None else element.dtype, dims


def _read_hosts(
    files: _Files, tables: list[_Table]
) -> tuple[dict[str, RelayModel], dict[GlobalVar, Function]]:
    """Return the parts of the host, and the functions that they call."""
    if not tables:
        return {}, {}
    path = f"{files.root}/{_HOST}"
    text = read_small(files.open(_HOST), MAX_GRAPH_TEXT_BYTES)
    try:
        mod = InferType().run(fromtext(text.decode("utf-8"), name=path))[0]
    except UnicodeDecodeError as error:
        raise FormatError("text that is not UTF-8", path=path, offset=error.start) from None
    with files.open(_PARAMS) as opened:
        weights = read_params(opened)
    functions = {variable.name_hint: f for variable, f in mod.functions.items()}
    hosts = {}
    for table in tables:
        name = table.text("name")
        if name not in functions:
            raise FormatError(f"no function is called {name}", path=path)
        hosts[name] = _read_host(functions[name], table, weights, path)
    others = {v: f for v, f in mod.functions.items() if v.name_hint not in hosts}
    return hosts, others


def _read_host(
    function: Function, table: _Table, weights: Mapping[str, Weight], path: str
) -> RelayModel:
    params: dict[str, Weight] = {}
    declared = {param.name_hint: param.type for param in function.params}
    if len(declared) != len(function.params):
        raise FormatError(f"{table.text('name')}: parameters share a name", path=path)
    for name in table.texts("weights"):
        weight = weights.get(name)
        if weight is None or declared.get(name) != TensorType(weight.shape, weight.dtype):
            raise FormatError(f"{table.text('name')}: no such weight: {name}", path=path)
        params[name] = weight
    inputs = tuple(name for name in declared if name not in params)
    mod = IRModule({GlobalVar("main", function.type): function}, checked=True)
    return RelayModel(mod, params, ModelMeta(inputs))


def _check_program(
    program: Program,
    regions: Mapping[str, RegionModule],
    hosts: Mapping[str, RelayModel],
    manifest: _Table,
) -> None:
    """Refuse steps that do not fit what they run, or that take what is not there."""
    known: dict[str, Type] = {}

    def define(names: Iterable[str], types: Iterable[Type]) -> None:
        for name, type_ in zip(names, types, strict=True):
            if name in known:
                raise manifest.fault(f"{name} is given twice")
            known[name] = type_

    define((port.name for port in program.inputs), (port.type for port in program.inputs))
    seen: set[str] = set()
    for step in program.steps:
        if step.name in seen:
            raise manifest.fault(f"step {step.name} runs twice")
        seen.add(step.name)
        takes, gives = _types_of(step, regions, hosts, manifest)
        if (len(step.inputs), len(step.outputs)) != (len(takes), len(gives)):
            raise manifest.fault(
                f"step {step.name}: expected {len(takes)} inputs and {len(gives)} outputs, found "
                f"{len(step.inputs)} and {len(step.outputs)}"
            )
        missing = [name for name in step.inputs if name not in known]
        if missing:
            raise manifest.fault(f"step {step.name} takes {missing[0]}, which is not there yet")
        for name, type_ in zip(step.inputs, takes, strict=True):
            if not _may_be(known[name], type_):
                raise manifest.fault(f"step {step.name} takes {type_}, but {name} is {known[name]}")
        define(step.outputs, gives)
    missing = [name for name in program.results if name not in known]
    if missing or len(program.results) != len(program.outputs):
        raise manifest.fault("results are not values of steps, or have not as many names")
    for call in (each for part in hosts.values() for each in foreign_calls(part)):
        if call.attrs["framework"] == REGION_FRAMEWORK:
            step = Step("region", call.attrs["name"], (), ())
            takes, gives = _types_of(step, regions, hosts, manifest)
            given = [*value_types(call.args[0].type), *value_types(call.type)]
            wanted = [*takes, *gives]
            if len(given) != len(wanted) or not all(map(_may_be, given, wanted)):
                raise manifest.fault(f"the host calls {step.name} on {given}, not on {wanted}")
            seen.add(step.name)
    if seen != {*regions, *hosts}:
        raise manifest.fault("some regions or parts of the host are no steps")


def _types_of(
    step: Step,
    regions: Mapping[str, RegionModule],
    hosts: Mapping[str, RelayModel],
    manifest: _Table,
) -> tuple[list[Type], list[Type]]:
    """Return the types of what a step takes and gives, as what it runs has them."""
    if step.kind == "region" and step.name in regions:
        region = regions[step.name]
        return [port.type for port in region.inputs], [port.type for port in region.outputs]
    if step.kind == "host" and step.name in hosts:
        part = hosts[step.name]
        takes = [param.checked_type for param in part.inputs()]
        return takes, list(value_types(part.main.body.type))
    raise manifest.fault(f"step {step.name}: there is no such {step.kind}")


def _may_be(given: Type, wanted: Type) -> bool:
    """Whether a value of one type may be one of another; lengths that are open fit all."""
    if not isinstance(given, TensorType) or not isinstance(wanted, TensorType):
        return given == wanted
    if (given.dtype, given.rank) != (wanted.dtype, wanted.rank):
        return False
    pairs = zip(given.shape, wanted.shape, strict=True)
    return all(a == b or not isinstance(a, int) or not isinstance(b, int) for a, b in pairs)
