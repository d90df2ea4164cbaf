"""Tells how the modules that tests of TVM make are read: their scripts, and what importers gave.

    python benchmarks/relax_modules.py collect FOLDER tests/python/relax [flag of pytest ...]
    python benchmarks/relax_modules.py judge FOLDER [--draw 600] [--seed 0] [--failures]

The first command runs tests of the release of TVM that is installed, from its source, and keeps
each module once, as JSON. The second reads each as Relay and runs it on numbers drawn by its name
beside TVM's virtual machine, in processes that may crash. A module that TVM itself does not run,
or whose inputs are no tensors of known dtypes, is only read.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

FRONTENDS = {
    "onnx": ["from_onnx"],
    "stablehlo": ["from_stablehlo"],
    "tflite": ["from_tflite"],
    "torch": ["from_exported_program", "from_fx"],
}


def _collect(folder: Path, tests: list[str]) -> int:
    """Run tests with this file as a plugin of pytest."""
    folder.mkdir(parents=True, exist_ok=True)
    plugin = f"import sys; sys.path.insert(0, {str(ROOT / 'benchmarks')!r}); import relax_modules"
    start = f"{plugin}; relax_modules.keep_modules({str(folder.resolve())!r})"
    code = f"{start}; import pytest; sys.exit(pytest.main(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "-q", "-p", "no:cacheprovider", *tests]
    return subprocess.run(command, check=False).returncode


def keep_modules(folder: str) -> None:
    """Keep every module that TVM parses or an importer gives from now on, in a folder."""
    import importlib

    import tvm
    from tvm.script.parser.ir import entry

    def keep(module: object) -> None:
        if isinstance(module, tvm.IRModule):
            text = tvm.ir.save_json(module)
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            (Path(folder) / f"{name}.json").write_text(text)

    _replace(entry.ir_module, keep)
    for home, names in FRONTENDS.items():
        try:
            module = importlib.import_module(f"tvm.relax.frontend.{home}")
        except ImportError:  # What it imports with is not installed.
            continue
        for name in names:
            _replace(getattr(module, name), keep)


def _replace(function: Callable[..., Any], keep: Callable[[object], None]) -> None:
    """Let every module of TVM have a function that keeps what it gives."""

    def kept(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        if not isinstance(found, type(lambda: None)):
            keep(found)
            return found
        return lambda *more: (made := found(*more), keep(made))[0]  # A decorator with options.

    vars(kept).update(vars(function))
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tvm"):
            for name, value in list(vars(module).items()):
                if value is function:
                    setattr(module, name, kept)


def _judge(path: str) -> tuple[str, str]:
    """Return the verdict on a module, and the reason where it is not right."""
    import tvm
    from support.relax_apart import verdict_of
    from support.relax_imports import compare, read_and_run, run_in_tvm

    import serde
    from serde.relax.framework import load

    framework = load()
    try:
        module = tvm.ir.load_json(Path(path).read_text())
    except Exception as error:  # Operators that tests registered.
        return "no function", f"TVM: {framework.last_line(error)}"
    functions = {
        variable.name_hint: each
        for variable, each in module.functions.items()
        if isinstance(each, framework.relax.Function)
    }
    if not functions:
        return "no function", ""
    public = [name for name, each in functions.items() if "global_symbol" in (each.attrs or {})]
    name = "main" if "main" in functions else min(public or functions)
    attrs = functions[name].attrs or {}
    own = list(attrs["params"]) if "params" in attrs else None
    options: dict[str, Any] = {} if name == "main" else {"function": name}
    try:
        arrays = _inputs(framework, functions[name], zlib.crc32(path.encode()))
    except (LookupError, TypeError) as error:  # Also lengths that are expressions.
        verdict, said = verdict_of(lambda: serde.to_relay(module, None, **options))
        return ("read only", str(error)) if verdict == "right" else (verdict, said)
    count = int(attrs.get("num_input", len(arrays)))
    weights = [tvm.runtime.tensor(each) for each in arrays[count:]] if own is None else None
    verdict, said = verdict_of(lambda: serde.to_relay(module, weights, **options))
    if verdict != "right":
        return verdict, said
    values = arrays if own is None or len(arrays) == count else [*arrays[:count], *own]
    try:
        expected = run_in_tvm(module, values, name)
    except Exception as error:
        return "read only", f"TVM: {framework.last_line(error)}"
    return verdict_of(
        lambda: compare(read_and_run(module, arrays[:count], weights, **options), expected)
    )


def _inputs(framework: Any, function: Any, seed: int) -> list[Any]:
    """Return an array for each parameter; names in lengths stand for 2, 3 and so on."""
    import numpy as np

    rng, lengths, arrays = np.random.default_rng(seed), dict[Any, int](), []

    def length(each: Any) -> int:
        if isinstance(each, framework.tir.Var):
            lengths.setdefault(each, len(lengths) + 2)
        known = lengths.get(each, each)
        return int(getattr(known, "value", known))

    for param in function.params:
        type_ = framework.type_of(param)
        if isinstance(type_, framework.ShapeType) and type_.values is not None:
            arrays.append(np.array(list(map(length, type_.values)), np.int64))
            continue
        number = isinstance(type_, framework.PrimType)
        if number and "int" in str(type_.dtype):
            arrays.append(np.array(length(framework.number_of(param)), str(type_.dtype)))
            continue
        tensor = isinstance(type_, framework.TensorType)
        shape = framework.lengths(type_) if tensor else () if number else None
        kind = np.dtype(str(type_.dtype)).kind if shape is not None and type_.dtype else ""
        if kind not in tuple("biuf"):
            raise LookupError(f"an input {type_!s:.80}")
        numbers = list(map(length, shape))
        drawn = rng.standard_normal(numbers) if kind == "f" else rng.integers(0, 2, numbers)
        arrays.append(np.asarray(drawn, str(type_.dtype)))
    return arrays


def main() -> int:
    """Collects, or judges and prints."""
    if sys.argv[1:2] == ["collect"]:
        return _collect(Path(sys.argv[2]), sys.argv[3:])
    from support.relax_apart import answer, count, judge_apart

    if sys.argv[1:2] == ["--here"]:
        answer(sys.argv[2:], _judge)
        return 0
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["collect", "judge"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draw", type=int, help="how many are drawn, all if not told")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--failures", action="store_true", help="a line a module not right")
    options = parser.parse_args()
    names = sorted(map(str, options.folder.resolve().glob("*.json")))
    if options.draw is not None:
        names = random.Random(options.seed).sample(names, options.draw)
    verdicts = []
    for name, verdict, said in judge_apart(__file__, names, seconds=90):
        verdicts.append(verdict)
        if options.failures and verdict != "right":
            print(Path(name).stem, verdict, said)
    print(count(verdicts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
