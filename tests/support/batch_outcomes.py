"""Outcomes of a batch: of real conversions of small nets, and many like them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import onnx
from onnx import TensorProto, helper

import serde
from serde.core.outcome import OUTCOMES, error_message, exit_code
from serde.core.report import Report
from serde.errors import SerdeError
from serde.fleet.batching.records import Outcome

OWN = "acme"
CHAINS = {
    "small": ("Relu", "Tanh"),
    "deep": ("Relu", "Sigmoid", "Tanh", "Abs", "Exp", "Softplus") * 3,
    "drawn": ("Relu", "Bernoulli"),
    "gate": ("Relu", "acme.Gate", "Tanh"),
    "pool": ("Relu", "acme.RoiPool", "Tanh", "acme.RoiPool"),
    "both": ("acme.Gate", "acme.RoiPool"),
    "warp": ("acme.Gate", "acme.Warp", "acme.RoiPool"),
    "sort": ("acme.BitonicSort", "acme.Warp"),
}
"""Operators of each kind of net, one after the other; those of ``acme`` are nobody's."""


def write_net(path: Path, ops: tuple[str, ...], width: int = 4) -> Path:
    """Write a net of operators that take one tensor each."""
    nodes, value = [], "x"
    for place, op in enumerate(ops):
        domain, _, name = op.rpartition(".")
        node = f"{name.lower()}_{place}"
        nodes.append(helper.make_node(name, [value], [node], name=node, domain=domain))
        value = node
    x, y = (
        helper.make_tensor_value_info(each, TensorProto.FLOAT, [1, width]) for each in ("x", value)
    )
    graph = helper.make_graph(nodes, "net", [x], [y])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(OWN, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def convert(source: Path, target: Path, *, check: int = 0) -> Outcome:
    """Convert a model as a batch does, and say how it ended."""
    report = Report()
    began = time.time()
    code, error = 0, ""
    try:
        serde.convert(source, target, report=report, check=check)
    except SerdeError as fault:
        code, error = exit_code(fault), error_message(fault).replace("\n", "; ")
    return Outcome(
        name=source.name,
        sources=(str(source),),
        target=str(target),
        status=OUTCOMES[code],
        error=error,
        content=f"{hash(source.read_bytes()) & 2**64 - 1:016x}",
        bytes_read=source.stat().st_size,
        bytes_written=target.stat().st_size if target.is_file() else 0,
        seconds=time.time() - began,
        memory=90_000_000,
        worker="host:1",
        started=began,
        report=report.as_dict(),
    )


def real_outcomes(folder: Path, *, check: int = 0) -> dict[str, Outcome]:
    """Convert a net of each kind to MXNet, and a file that is none."""
    found = {}
    for kind, ops in CHAINS.items():
        source = write_net(folder / f"{kind}.onnx", ops)
        found[kind] = convert(source, folder / f"{kind}-symbol.json", check=check)
    whole = (folder / "small.onnx").read_bytes()
    torn = folder / "torn.onnx"
    torn.write_bytes(whole[: len(whole) // 2])
    found["torn"] = convert(torn, folder / "torn-symbol.json")
    return found


def died(name: str, status: str, error: str, **figures: float) -> Outcome:
    """Return what a batch says of a model whose process did not come to an end."""
    worker = "host:2"
    return replace(
        Outcome(name=name, sources=(name,), target=f"out/{name}", status=status, error=error),
        worker=worker,
        **figures,
    )


def many_outcomes(folder: Path, count: int) -> Iterator[Outcome]:
    """Yield outcomes like real ones, under names and with figures of their own."""
    kinds = [*real_outcomes(folder).values()]
    shares = (40, 25, 3, 9, 6, 4, 2, 1, 2)
    for place in range(count):
        share = place * 37 % (sum(shares) + 8)
        at = 0
        while at < len(shares) and share >= shares[at]:
            share -= shares[at]
            at += 1
        name = f"s3://store/team-{place % 7}/net-{place:05d}.onnx"
        seconds = 0.05 + (place * 7919 % 1000) / 400
        figures = {"seconds": seconds, "started": 1_790_000_000.0 + place * 0.05}
        if at == len(shares):
            yield died(name, *_DEATHS[place % len(_DEATHS)], **figures)
            continue
        yield replace(
            kinds[at],
            name=name,
            sources=(name,),
            target=f"s3://store/out/net-{place:05d}-symbol.json",
            error=kinds[at].error.replace(kinds[at].sources[0], name),
            worker=f"host:{place % 2 + 1}",
            bytes_read=place * 104_729 % 200_000_000,
            memory=80_000_000 + place * 7_368_787 % 900_000_000,
            **figures,
        )


_DEATHS = (
    ("out of time", "after 60 s"),
    ("out of memory", "more than 2.0 GB"),
    ("crashed", "killed by signal 11 (SIGSEGV)"),
    ("unreachable", "403 Forbidden"),
)
