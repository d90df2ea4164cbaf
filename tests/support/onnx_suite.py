"""The backend suite inside the onnx package: its cases, and how a conversion fares on one."""

from __future__ import annotations

import fcntl
import functools
import os
import pickle
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner
from onnx.helper import tensor_dtype_to_np_dtype
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented
from support.runtime import newest_runtime_opset, open_session

import serde
from serde.bridge.formats import get_bridge
from serde.compat import import_mxnet
from serde.conversion.prepare import PrepareOptions, prepare
from serde.core.report import Report
from serde.errors import Unsupported
from serde.mxnet.engine import MxnetEngine, mxnet_program
from serde.onnx.versions import LOWEST_TARGET
from serde.relay.ir.expr import Var
from serde.relay.ir.model import RelayModel
from serde.relay.ir.types import SequenceType
from serde.relay.run.interpreter import run

KINDS = ("node", "simple", "real", "pytorch-converted", "pytorch-operator")

MXNET_DTYPES = ["float16", "float32", "float64", "int8", "uint8", "int32", "int64", "bool"]
"""Element types of arrays in MXNet 1.9.1."""

RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)
"""Operators whose results are judged by shape, dtype and range."""


@dataclass(frozen=True)
class SuiteCase:
    """One test of the suite.

    Attributes:
        name: Its name, without ``test_``.
        kind: Its group.
        model: Makes the model.
        data: Makes the sets of inputs and outputs.
        rtol: Relative tolerance that the suite gives it.
        atol: Absolute tolerance.
        operators: The operators of the graph, sorted, those of subgraphs included.
        functions: The operators that the model itself defines, named likewise.
        left_out: Why it is not among those that count, or None.
    """

    name: str
    kind: str
    model: Any
    data: Any
    rtol: float
    atol: float
    operators: tuple[str, ...]
    functions: frozenset[str]
    left_out: str | None

    @property
    def expanded(self) -> bool:
        """Whether it is the body of an operator that ONNX defines by others."""
        return "_expanded" in self.name

    @property
    def random(self) -> bool:
        """Whether its results are drawn, and judged by shape, dtype and range."""
        drops = self.name.startswith("training_dropout") and "zero_ratio" not in self.name
        return drops or not RANDOM.isdisjoint(self.operators)


def load_cases() -> list[SuiteCase]:
    """All cases, by group and name.

    To make them, onnx computes all their values by its reference, so they are kept in a file from
    run to run; of two processes that find none, one makes it.
    """
    versions = f"{onnx.__version__}-{np.__version__}-{sys.version_info.minor}"
    path = Path(__file__).parents[2] / ".pytest_cache" / f"onnx-suite-{versions}"
    path.parent.mkdir(exist_ok=True)
    with open(f"{path}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _keep_cases(path)
    with open(path, "rb") as file:
        index = file.seek(-8, os.SEEK_END)
        file.seek(int.from_bytes(file.read(8), "little"))
        kept = pickle.loads(file.read(index - file.tell()))
    return [
        SuiteCase(
            *facts[:2],
            functools.partial(_kept_model, path, *places[0]),
            functools.partial(_kept_data, path, *places[1]),
            *facts[2:],
        )
        for facts, *places in kept
    ]


def _keep_cases(path: Path) -> None:
    """Write the models and data of all cases, a table of their places, and its place."""
    table = []
    unready = path.with_suffix(".unready")
    with open(unready, "wb") as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")

        def keep(content: bytes) -> tuple[int, int]:
            return file.tell(), file.write(content)

        for kind in KINDS:
            for test in sorted(load_model_tests(kind=kind), key=lambda each: each.name):
                model, data = _case(test, kind)
                facts = (
                    re.sub("^test_", "", test.name), kind, test.rtol, test.atol,
                    tuple(sorted(set(_operators(model)))),
                    frozenset(f"{each.domain}.{each.name}" for each in model.functions),
                    _left_out(model),
                )  # fmt: skip
                place = keep(model.SerializeToString())
                table.append((facts, place, keep(pickle.dumps(data))))
        start = file.tell()
        file.write(pickle.dumps(table) + start.to_bytes(8, "little"))
    unready.rename(path)


def _kept(path: Path, start: int, size: int) -> bytes:
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(size)


def _kept_model(path: Path, start: int, size: int) -> onnx.ModelProto:
    return onnx.ModelProto.FromString(_kept(path, start, size))


def _kept_data(path: Path, start: int, size: int) -> list[tuple[list[Any], list[Any]]]:
    return pickle.loads(_kept(path, start, size))


def _case(test: Any, kind: str) -> tuple[onnx.ModelProto, list[tuple[list[Any], list[Any]]]]:
    """The model of a test of the suite, and its sets of inputs and outputs."""
    if kind == "node":
        return test.model, _arrays(test.data_sets)
    if kind == "real":
        path = Path(onnx.__file__).parent.parent / test.url
        return onnx.load(path), [_light_data(path)]
    folder = Path(test.model_dir)
    model = onnx.load(folder / "model.onnx")
    return model, _stored_data(folder, model)


def _arrays(sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]) -> list[tuple[list, list]]:
    return [([_array(x) for x in xs], [_array(y) for y in ys]) for xs, ys in sets]


def _array(value: Any) -> Any:
    """The value of a message, and a number as an array; anything else as it is."""
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return np.asarray(value) if isinstance(value, (np.generic, int, float)) else value


def _light_data(path: Path) -> tuple[list[Any], list[Any]]:
    """The input that the suite makes for its nets without weights, and the stored output."""
    graph = onnx.load(path).graph
    weights = {each.name for each in graph.initializer}
    inputs = [
        Runner.generate_dummy_data(each, seed=0, name=path.stem, random=False)
        for each in graph.input
        if each.name not in weights
    ]
    stored = onnx.load_tensor(path.with_name(f"{path.stem}_output_0.pb"))
    return inputs, [numpy_helper.to_array(stored)]


def _stored_data(folder: Path, model: onnx.ModelProto) -> list[tuple[list[Any], list[Any]]]:
    found = []
    for data in sorted(folder.glob("test_data_set_*")):
        parts = []
        for kind, declared in (("input", model.graph.input), ("output", model.graph.output)):
            count = len(list(data.glob(f"{kind}_*.pb")))
            parts.append([_read(data / f"{kind}_{i}.pb", declared[i].type) for i in range(count)])
        found.append((parts[0], parts[1]))
    return found


def _read(path: Path, type_: onnx.TypeProto) -> Any:
    content = path.read_bytes()
    if type_.HasField("sequence_type"):
        return numpy_helper.to_list(onnx.SequenceProto.FromString(content))
    if type_.HasField("optional_type"):
        return numpy_helper.to_optional(onnx.OptionalProto.FromString(content))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def _operators(model: onnx.ModelProto) -> list[str]:
    found = []
    pending = [*model.graph.node, *(node for f in model.functions for node in f.node)]
    while pending:
        node = pending.pop()
        found.append(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                pending.extend(graph.node)
    return found


def _left_out(model: onnx.ModelProto) -> str | None:
    """Why a case is not among those that count, or None."""
    domains = {entry.domain for entry in model.opset_import}
    for domain in ("ai.onnx.preview", "ai.onnx.preview.training"):
        if domain in domains:
            return domain
    return "strings" if _has_strings(model) else None


def _has_strings(model: onnx.ModelProto) -> bool:
    text = str(model.graph.input) + str(model.graph.output)
    if re.search(r"elem_type: 8\b", text):
        return True
    return any(
        each.name in ("value_string", "value_strings") or each.t.data_type == 8
        for node in model.graph.node
        for each in node.attribute
    )


def frozen(case: SuiteCase) -> SuiteCase:
    """The same case with constant inputs as initializers, as real models have them.

    Of its inputs, all but the first that is not a vector of integers are constant.
    """
    model, data = case.model(), case.data()
    if case.kind == "real" or not data:
        return case
    known = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in known]
    given = data[0][0]
    fixed = _constant_places(given, len(names))
    if not fixed or any(not _same(given, other[0], fixed) for other in data[1:]):
        return case
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    for place in fixed:
        tensor = numpy_helper.from_array(np.asarray(given[place]), names[place])
        changed.graph.initializer.append(tensor)
    kept = [each for each in changed.graph.input if each.name not in {names[p] for p in fixed}]
    del changed.graph.input[:]
    changed.graph.input.extend(kept)
    sets = [([x for i, x in enumerate(xs) if i not in fixed], ys) for xs, ys in data]
    return replace(case, model=lambda: changed, data=lambda: sets)


def _constant_places(given: Sequence[Any], count: int) -> set[int]:
    arrays = [isinstance(each, (np.ndarray, np.generic)) for each in given]
    data = [
        place
        for place, each in enumerate(given)
        if not (arrays[place] and np.ndim(each) <= 1 and np.asarray(each).dtype.kind in "iu")
    ]
    first = data[0] if data else None
    return {place for place in range(min(count, len(given))) if arrays[place] and place != first}


def _same(given: Sequence[Any], other: Sequence[Any], places: set[int]) -> bool:
    return all(np.array_equal(given[place], other[place]) for place in places)


def feeds(model: onnx.ModelProto, values: Sequence[Any]) -> dict[str, Any]:
    """The values of a set by the names of the inputs."""
    known = {each.name for each in model.graph.initializer}
    names = [each.name for each in model.graph.input if each.name not in known]
    if len(names) != len(values):
        names = [each.name for each in model.graph.input]
    return dict(zip(names, values, strict=False))


def interpret(model: RelayModel, values: Mapping[str, Any]) -> list[Any]:
    """The outputs that the Relay interpreter gives."""
    arguments = [
        _argument(p, values[p.name_hint])
        if p.name_hint in values
        else model.params[p.name_hint].array()
        for p in model.main.params
    ]
    result = run(model.main, arguments, mod=model.mod)
    return list(result) if len(model.meta.outputs) > 1 else [result]


def _argument(parameter: Var, value: Any) -> Any:
    """The value of a parameter: of an optional tensor, a list of at most one."""
    return _as_list(value) if isinstance(parameter.type, SequenceType) else value


def _as_list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    return [] if value is None else [value]


def judge(case: SuiteCase, expected: Sequence[Any], found: Sequence[Any]) -> None:
    """Compare results as the suite does; random ones by shape, dtype and range.

    Raises:
        AssertionError: They differ.
    """
    if not case.random:
        assert _dtypes(found) == _dtypes(expected)
        wanted, values = comparable(expected), comparable(found)
        Runner.assert_similar_outputs(wanted, values, case.rtol, case.atol, case.name)
        return
    for wanted, value in zip(expected, found, strict=True):
        assert value.shape == wanted.shape
        assert value.dtype == wanted.dtype
        if "Bernoulli" in case.operators:
            assert np.isin(value, (0, 1)).all()


def _dtypes(values: Any) -> Any:
    if isinstance(values, (list, tuple)):
        return [_dtypes(each) for each in values]
    return None if values is None else values.dtype


def comparable(values: Any) -> Any:
    """The values with numbers that NumPy cannot compare as float32."""
    if isinstance(values, (list, tuple)):
        return [comparable(each) for each in values]
    if values is None or not _is_extended(values) or values.dtype.name == "bfloat16":
        return values
    return values.astype(np.float32)


def _is_extended(value: np.ndarray) -> bool:
    """Whether NumPy itself does not have the element type."""
    return value.dtype.type.__module__.partition(".")[0] != "numpy"


def exported(case: SuiteCase, model: RelayModel) -> onnx.ModelProto:
    """The model as ONNX again, at the version of the case where that is written and runs."""
    versions = [entry.version for entry in case.model().opset_import if not entry.domain]
    target = min(max([LOWEST_TARGET, *versions]), newest_runtime_opset())
    return serde.from_relay(model, format="onnx", opset=target)


def check_export(case: SuiteCase, model: RelayModel) -> None:
    """Export an imported case and compare a runtime's results with those of the suite.

    ONNX's reference runs what ONNX Runtime has no kernel or no Python value for.

    Raises:
        SerdeError: It is refused.
        AssertionError: A result is wrong.
    """
    proto = exported(case, model)
    for inputs, outputs in case.data():
        given = feeds(case.model(), inputs)
        names = {each.name for each in proto.graph.input}
        given = {name: each for name, each in given.items() if name in names}
        for each in proto.graph.input:
            if each.type.HasField("sequence_type"):
                given[each.name] = _as_list(given[each.name])
        judge(case, outputs, _run(proto, given, outputs))


def check_mxnet(case: SuiteCase) -> None:
    """Write an imported case for MXNet and compare MXNet's results with those of the suite.

    Raises:
        SerdeError: It is refused, or MXNet is not installed, or has no arrays like the inputs.
        AssertionError: A result is wrong.
    """
    mxnet = import_mxnet()
    graph, sets = case.model().graph, case.data()
    dtypes = {
        each.dtype for pair in sets for part in pair for each in part if hasattr(each, "dtype")
    }
    dtypes |= {np.dtype(tensor_dtype_to_np_dtype(each.data_type)) for each in graph.initializer}
    foreign = sorted({each.name for each in dtypes} - set(MXNET_DTYPES))
    if foreign:
        raise Unsupported(f"MXNet has no arrays of {', '.join(foreign)}")
    model = imported(case)
    model = prepare(model, PrepareOptions(), report=Report())
    target = get_bridge("mxnet")
    native = target.from_relay(model, target.bind_export({}), report=Report())
    engine = MxnetEngine(mxnet, mxnet_program(native, model))
    for inputs, outputs in case.data():
        given = feeds(case.model(), inputs)
        found = engine.run({name: given[name] for name in model.meta.inputs})
        judge(case, outputs, found)


def _run(proto: onnx.ModelProto, given: dict[str, Any], outputs: Sequence[Any]) -> list[Any]:
    arrays = [each for each in (*given.values(), *outputs) if isinstance(each, np.ndarray)]
    if not any(map(_is_extended, arrays)):
        try:
            return open_session(proto.SerializeToString()).run(None, given)
        except NotImplemented:
            pass
    return ReferenceEvaluator(proto).run(None, given)


def imported(case: SuiteCase) -> RelayModel:
    """The case as Relay; sequences whose rank it leaves open have that of its data.

    Raises:
        SerdeError: It is refused.
    """
    proto = case.model()
    shapes = {}
    given = feeds(proto, case.data()[0][0]) if case.data() else {}
    for each in proto.graph.input:
        type_ = each.type.sequence_type.elem_type.tensor_type
        if each.type.HasField("sequence_type") and not type_.HasField("shape"):
            shapes[each.name] = ["?"] * np.ndim(given[each.name][0])
    return serde.to_relay(proto, input_shapes=shapes)


def check_import(case: SuiteCase) -> RelayModel:
    """Import a case and compare the interpreter's results with those of the suite.

    Raises:
        SerdeError: It is refused.
        AssertionError: A result is wrong.
    """
    proto = case.model()
    model = imported(case)
    for inputs, outputs in case.data():
        judge(case, outputs, interpret(model, feeds(proto, inputs)))
    return model
