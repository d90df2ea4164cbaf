"""What holds of every partition, found without the code that makes them."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import tomllib
from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel
from support.random_graphs import RandomGraph, generate

import serde.relay as relay
from serde.errors import CheckError
from serde.onnx.builder import walk_nodes
from serde.relay.ir.model import RelayModel
from serde.target import HybridExecutor, OnnxModule
from serde.target.onnx import build
from serde.target.partition import Partition, partition_model

OPSETS = (11, 13, 17)


def listed_operators(supported: Any) -> set[str] | None:
    """Names of the operators in a list of what is supported; None where there is no list."""
    if supported is None:
        return None
    if isinstance(supported, Path):
        text = supported.read_text(encoding="utf-8")
        supported = json.loads(text) if supported.suffix == ".json" else tomllib.loads(text)
    if not isinstance(supported, Mapping):
        return set(supported)
    own = {name.partition("::")[2] for name in supported.get("composites", {})}
    return own.union(supported["operators"]) if "operators" in supported else None


def check_regions(found: Partition, module: OnnxModule, supported: Any) -> None:
    """Regions hold only what is listed, are sound ONNX, convex, and wait for no circle."""
    listed = listed_operators(supported)
    for region in module.imported_modules:
        nodes = {node.op_type for node in walk_nodes(region.native.proto.graph.node)}
        assert listed is None or nodes <= listed, nodes - listed
        if region.native.nbytes < 2**20:
            onnx.checker.check_model(region.proto(), full_check=True)
    check_convex([node.region for node in found.nodes], [node.sources for node in found.nodes])
    assert sum(region.calls for region in found.regions) == sum(
        node.calls for node in found.nodes if node.region is not None
    )


def check_convex(regions: Sequence[int | None], sources: Sequence[Sequence[int]]) -> None:
    """No path leaves a region and comes back: the regions, and each host node, can be ordered."""
    groups = [f"host {i}" if region is None else region for i, region in enumerate(regions)]
    waits: dict[Any, set[Any]] = {group: set() for group in groups}
    for number, before in enumerate(sources):
        waits[groups[number]] |= {groups[each] for each in before} - {groups[number]}
    readers: dict[Any, list[Any]] = {group: [] for group in groups}
    for group, others in waits.items():
        for other in others:
            readers[other].append(group)
    ready = [group for group, others in waits.items() if not others]
    left = {group: len(others) for group, others in waits.items()}
    for done in count():
        if not ready:
            assert done == len(waits), "regions wait for each other"
            return
        for reader in readers[ready.pop()]:
            left[reader] -= 1
            if not left[reader]:
                ready.append(reader)


def check_random(
    seed: int, composites: Callable[[RelayModel], dict[str, Any]] | None = None, **options: Any
) -> int:
    """Split and run the random graph of a seed; return the number of its regions."""
    control = frozenset() if seed % 3 else frozenset(["let", "if", "loop", "scan"])
    graph = generate(seed, OPSETS, control)
    supported: Any = draw_list(graph, seed)
    if composites is not None:
        listed = {} if supported is None else {"operators": supported}
        supported = {**listed, "composites": composites(graph.model)}
    found = partition_model(graph.model, opset=graph.opset, supported=supported, **options)
    relay.verify(found.model.mod)
    module = build(found.model)
    check_regions(found, module, supported)
    results, runner = run_split(module, graph.feeds)
    for result, expected in zip(results, graph.outputs, strict=True):
        assert result.dtype == expected.value.dtype
        assert result.shape == expected.value.shape
        off = np.abs(result.astype(np.float64) - expected.runs[0])
        assert (off <= expected.tolerance).all(), f"{off.max()} off"
    with tempfile.TemporaryDirectory() as directory:
        folder = module.save(Path(directory) / "split")
        again = HybridExecutor(OnnxModule.load(folder), runner=runner).run(graph.feeds)
        for one, other in zip(results, again, strict=True):
            assert one.dtype == other.dtype
            assert np.array_equal(one, other, equal_nan=one.dtype.kind in "fc")
    return len(found.regions)


def draw_list(graph: RandomGraph, seed: int) -> list[str] | None:
    """Some of the operators that are written for a graph; of every fifth all that can be."""
    rng = np.random.default_rng(seed)
    if seed % 5 == 0:
        return None
    found = partition_model(graph.model, opset=graph.opset)
    used = sorted({op for region in found.regions for op in region.nodes})
    share = rng.choice([0.3, 0.6, 0.9])
    return [op for op in used if rng.random() < share] or ["Relu"]


def run_split(module: OnnxModule, feeds: Mapping[str, np.ndarray]) -> tuple[list[np.ndarray], str]:
    """Run a module by ONNX Runtime; by ONNX's reference where that has no kernel for a dtype."""
    try:
        return HybridExecutor(module).run(feeds), "onnxruntime"
    except (CheckError, NoKernel) as error:
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        return HybridExecutor(module, runner="reference").run(feeds), "reference"


def partitions(items: list[int]) -> Iterator[list[list[int]]]:
    """All partitions of some items into groups."""
    if not items:
        yield []
        return
    first, rest = items[0], items[1:]
    for groups in partitions(rest):
        yield [[first], *groups]
        for index, group in enumerate(groups):
            yield [*groups[:index], [first, *group], *groups[index + 1 :]]


def is_sound(groups: list[list[int]], count: int, reads: list[list[int]]) -> bool:
    """Whether groups can be run one after the other, by walking all paths from each."""
    group_of: dict[int, int] = {unit: at for at, group in enumerate(groups) for unit in group}
    names = [group_of.get(unit, -1 - unit) for unit in range(count)]
    reach = {name: set() for name in names}  # type: dict[int, set[int]]
    for unit, sources in enumerate(reads):
        for source in sources:
            if names[source] != names[unit]:
                reach[names[source]].add(names[unit])
    for start in reach:
        seen, pending = set(), list(reach[start])
        while pending:
            name = pending.pop()
            if name == start:
                return False
            if name not in seen:
                seen.add(name)
                pending += reach[name]
    return True


def fewest_by_trial(inside: str, reads: list[list[int]]) -> int:
    """The least number of regions of all partitions that can be run."""
    units = [unit for unit, each in enumerate(inside) if each == "x"]
    counts = (len(groups) for groups in partitions(units) if is_sound(groups, len(inside), reads))
    return min(counts)
