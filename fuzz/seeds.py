"""Honest models to begin with: written by the libraries of each format, and by serde.

They are made once and kept in ``fuzz/.seeds``, an archive a format; ``python -m fuzz.seeds``
makes them anew, ``python -m fuzz.seeds --pack FORMAT FILE`` packs them for libFuzzer.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from fuzz.case import Case
from fuzz.judge import SUFFIXES

__all__ = ["FORMATS", "load_seeds", "make_seeds"]

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = HERE / ".seeds"

FORMATS = ("coreml", "mxnet", "nnef", "onnx", "relax", "relay", "torch")

MOST_BYTES = 60_000
"""Larger seeds are left out: they are no better, and slow."""


def load_seeds(format: str) -> list[Case]:
    """Return the seeds of a format, which are made if there are none."""
    path = FOLDER / f"{format}.zip"
    if not path.exists():
        make_seeds(format)
    with zipfile.ZipFile(path) as archive:
        return [Case.unpack(format, name, archive.read(name)) for name in archive.namelist()]


def make_seeds(format: str) -> None:
    """Make the seeds of a format and keep them."""
    for folder in (ROOT / "tests", ROOT):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    FOLDER.mkdir(exist_ok=True)
    kept: dict[str, bytes] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in _each(format):
            if 0 < case.size <= MOST_BYTES:
                kept[case.name] = case.pack()
    unready = FOLDER / f"{format}.zip.unready"
    with zipfile.ZipFile(unready, "w") as archive:
        for name, data in kept.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    unready.rename(FOLDER / f"{format}.zip")
    print(f"{format}: {len(kept)} seeds", file=sys.stderr)


def _each(format: str) -> Iterator[Case]:
    if format in _LIBRARIES:
        yield from _LIBRARIES[format]()
    if format != "torch":  # What serde writes for it is Python, which is not run unasked.
        yield from _samples(format)


def _samples(format: str) -> Iterator[Case]:
    """Samples of operators as serde writes them, with inputs and with weights."""
    from support.samples import all_samples, build

    import serde
    from serde.errors import SerdeError
    from serde.relay.ir.model import ModelMeta, RelayModel
    from serde.relay.ir.module import IRModule
    from serde.weights import ArrayWeight

    for place, parameter in enumerate(all_samples()):
        built = build(*parameter.values)
        values = dict(zip(built.variables, built.arrays, strict=True))
        weighed = built.variables[1:] if place % 2 else ()
        params = {
            each.name_hint: ArrayWeight(values[each])
            for each in weighed
            if hasattr(values[each], "dtype")
        }
        fields = getattr(built.call.type, "fields", (built.call.type,))
        inputs = tuple(each.name_hint for each in built.variables if each.name_hint not in params)
        meta = ModelMeta(inputs, tuple(f"out{i}" for i in range(len(fields))))
        model = RelayModel(IRModule({"main": built.function}), params, meta)
        with tempfile.TemporaryDirectory() as folder, contextlib.suppress(SerdeError):
            serde.convert(
                model, f"{folder}/m{SUFFIXES[format]}",
                source_format="relay", target_format=format,
            )  # fmt: skip
            yield _written(format, f"sample-{parameter.id}", Path(folder))


def _written(format: str, name: str, folder: Path) -> Case:
    main = folder / f"m{SUFFIXES[format]}"
    return Case.of_paths(format, name, [main, *(p for p in sorted(folder.iterdir()) if p != main)])


def _onnx() -> Iterator[Case]:
    """The models of the backend suite of the onnx package."""
    from support.onnx_suite import load_cases

    for case in load_cases():
        yield Case.of(
            "onnx", f"{case.kind}-{case.name}", {"m.onnx": case.model().SerializeToString()}
        )


def _torch() -> Iterator[Case]:
    """Programs that ``torch.export`` wrote."""
    for path in sorted((ROOT / "tests/golden/torch").glob("*.pt2")):
        yield Case.of("torch", path.stem, {"m.pt2": path.read_bytes()})


def _coreml() -> Iterator[Case]:
    """Models that coremltools wrote, of five releases."""
    for path in sorted((ROOT / "tests/golden/coreml").glob("*.zip")):
        with zipfile.ZipFile(path) as archive:
            models: dict[str, dict[str, bytes]] = {}
            for name in archive.namelist():
                if not name.endswith("/"):
                    models.setdefault(name.partition("/")[0], {})[name] = archive.read(name)
        for name, files in models.items():
            if name.endswith((".mlmodel", ".mlpackage")):
                yield Case.of("coreml", f"{path.stem}-{name}", files)


def _mxnet() -> Iterator[Case]:
    """Symbols that releases of MXNet wrote."""
    for path in sorted((ROOT / "tests/golden/compat").glob("*-symbol.json")):
        yield Case.of("mxnet", path.stem, {"m-symbol.json": path.read_bytes()})


def _nnef() -> Iterator[Case]:
    """Graphs of one invocation each, with tensors that Khronos' package writes."""
    return iter(())


def _relay() -> Iterator[Case]:
    """Programs that TVM 0.18 wrote."""
    path = ROOT / "tests/golden/tvm/relay_golden.json"
    programs: dict[str, Any] = json.loads(path.read_text())
    for name, text in _texts(programs, ""):
        main = "m.json" if text.startswith("{") else "m.relay"
        yield Case.of("relay", f"tvm{name}", {main: text.encode()})


def _texts(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _texts(inner, f"{name}-{key}"[:80])
    elif isinstance(value, str) and ('"nodes"' in value or "fn (" in value or "def @" in value):
        yield name, value


_LIBRARIES: dict[str, Callable[[], Iterator[Case]]] = {
    "coreml": _coreml,
    "mxnet": _mxnet,
    "nnef": _nnef,
    "onnx": _onnx,
    "relay": _relay,
    "torch": _torch,
}


def pack_seeds(format: str, path: Path) -> None:
    """Write the seeds of a format, or of all, as libFuzzer takes them: an archive of inputs."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each in [format] if format in FORMATS else FORMATS:
            for case in load_seeds(each):
                archive.writestr(f"{each}-{case.digest}", case.pack())


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pack"]:
        pack_seeds(sys.argv[2], Path(sys.argv[3]))
    else:
        for each in sys.argv[1:] or FORMATS:
            make_seeds(each)
