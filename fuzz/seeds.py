"""Models to begin with: written by the libraries of each format, by serde, and by its tests.

They are made once and kept in ``fuzz/.seeds``, an archive a format; ``python -m fuzz.seeds``
makes them anew, ``python -m fuzz.seeds --pack FORMAT FILE`` packs them for libFuzzer.
"""

from __future__ import annotations

import contextlib
import math
import random
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzz import own
from fuzz.case import Case
from fuzz.harvest import harvest
from fuzz.judge import HANDED, SUFFIXES
from fuzz.libraries import LIBRARIES
from fuzz.odd import ODD

__all__ = ["FORMATS", "Seeds", "load_seeds", "make_seeds"]

HERE = Path(__file__).parent
ROOT = HERE.parent
FOLDER = HERE / ".seeds"

FORMATS = ("coreml", "mxnet", "nnef", "onnx", "own", "relax", "relay", "tflite", "torch")

MOST_BYTES = 60_000
"""Larger seeds are left out: they are no better, and slow."""


def load_seeds(format: str) -> list[Case]:
    """Return the seeds of a format, which are made if there are none."""
    path = FOLDER / f"{format}.zip"
    if not path.exists():
        make_seeds(format)
    with zipfile.ZipFile(path) as archive:
        return [Case.unpack(name, archive.read(name)) for name in archive.namelist()]


class Seeds:
    """Seeds by family: of the large ones, such as samples, each is drawn more rarely.

    Args:
        cases: All of them; the family is what the name begins with, up to a dash.
    """

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = cases
        families: dict[str, list[Case]] = {}
        for case in cases:
            families.setdefault(case.name.partition("-")[0], []).append(case)
        self._families = list(families.values())
        self._weights = [math.sqrt(len(each)) for each in self._families]

    def choose(self, rng: random.Random) -> Case:
        """Return one seed."""
        return rng.choice(rng.choices(self._families, self._weights)[0])

    def sample(self, count: int, rng: random.Random) -> list[Case]:
        """Return so many seeds or fewer, of every family some."""
        share = count / sum(self._weights)
        return [
            case
            for family, weight in zip(self._families, self._weights, strict=True)
            for case in rng.sample(family, min(len(family), math.ceil(share * weight)))
        ]


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
            if case.files and (case.size <= MOST_BYTES or case.name.startswith("odd-")):
                kept[case.name] = case.pack()
    unready = FOLDER / f"{format}.zip.unready"
    with zipfile.ZipFile(unready, "w") as archive:
        for name, data in kept.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    unready.rename(FOLDER / f"{format}.zip")
    print(f"{format}: {len(kept)} seeds", file=sys.stderr)


def _each(format: str) -> Iterator[Case]:
    if format == "own":
        yield from own.seeds()
        return
    if format in LIBRARIES:
        handed: Counter[str] = Counter()
        for case in LIBRARIES[format]():
            yield case
            for other in _handed(case):
                handed[other.options[HANDED]] += 1
                if handed[other.options[HANDED]] <= _HANDED_MOST:
                    yield other
    if format in ODD:
        yield from ODD[format]()
    if format != "torch":  # What serde writes for it is Python, which is not run unasked.
        yield from _samples(format)
    yield from harvest(format)


def _handed(case: Case) -> Iterator[Case]:
    """The case as bytes, as a pair of them or of paths: readers take these in place of a path."""
    ways = _HANDED.get(case.format, ())
    for way in ways if case.main in case.files else ():
        if way in ("bytes", "prefix") or len(case.files) == 2:
            options = {**case.options, HANDED: way}
            yield replace(case, name=f"{way}-{case.name}", options=options)


def _samples(format: str) -> Iterator[Case]:
    """Samples of operators as serde writes them, with inputs and with weights."""
    from support.samples import all_samples, build

    import serde
    from serde.core.weights import ArrayWeight
    from serde.errors import SerdeError
    from serde.relay.ir.model import ModelMeta, RelayModel
    from serde.relay.ir.module import IRModule

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
        for kind, suffix, options in _FORMS.get(format, [("sample", SUFFIXES[format], {})]):
            with tempfile.TemporaryDirectory() as folder, contextlib.suppress(SerdeError):
                path = Path(folder, f"m{suffix}")
                serde.convert(model, path, target_format=format, **options)
                others = [each for each in sorted(path.parent.iterdir()) if each != path]
                yield Case.of_paths(format, f"{kind}-{parameter.id}", [path, *others])


_HANDED_MOST = 12
_HANDED: Mapping[str, Sequence[str]] = {
    "coreml": ("bytes",),
    "mxnet": ("bytes", "pair", "riap", "paths", "prefix"),
    "onnx": ("bytes",),
    "relay": ("bytes", "pair", "riap", "paths", "prefix"),
}
"""What readers take besides a path."""

_FORMS: Mapping[str, Sequence[tuple[str, str, Mapping[str, Any]]]] = {
    "coreml": [
        ("program", ".mlpackage", {}),
        ("network", ".mlmodel", {"minimum_deployment_target": "iOS14"}),
    ],
    "nnef": [("archive", ".nnef.tgz", {}), ("folder", "_nnef", {})],
    "relay": [("sample", ".relay", {}), ("strict", ".relay", {"strict": True})],
}
"""Kinds of files that a format has, their suffixes, and options to write them."""


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
