"""Seeded inputs for a check, within the ranges that the model can take.

Floats are drawn from the standard normal distribution, the scale of
normalised images. Integers, and floats that serve as indices or lengths (MXNet
has those as float32), are whole numbers of the range that the graph allows
(:mod:`serde.checking.constraints`). The pixels of an input that is an image, as
far as the model's facts say so, are those of eight bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from serde.checking.constraints import InputConstraints, Regions, find_constraints
from serde.checking.data import CheckData
from serde.checking.engines import RememberingEngine
from serde.checking.sizes import (
    declared_sizes,
    further_sizes,
    input_type,
    opened_sizes,
    resolve_dims,
    shape_at,
    size_text,
)
from serde.core import Array, Report, numpy_dtype
from serde.engine.base import Engine, run_engine
from serde.engine.fitting import match_names
from serde.engine.process import EngineEnded
from serde.errors import CheckError
from serde.relay.ir.model import RelayModel

__all__ = ["InputSets", "input_constraints", "random_inputs"]

PIXELS = (0, 255)
"""Range of the pixels of an image."""

_UNLIMITED = {
    "int2": (-2, 1),
    "int4": (-8, 7),
    "int8": (-128, 127),
    "uint2": (0, 3),
    "uint4": (0, 15),
    "uint8": (0, 255),
}
"""Range of integers that no consumer limits; 0 to 99 for the dtypes not named."""

_EXACT = {
    "bfloat16": 2**8,
    "float16": 2**11,
    "int16": 2**15 - 1,
    **{dtype: high for dtype, (_low, high) in _UNLIMITED.items()},
}
"""Greatest whole number up to which a narrow dtype holds all."""

_FLOATS = ("float32", "float16", "bfloat16")
"""Floats that hold less than others, those that hold more first."""

_COUNTED = 0.75
"""Part of a mask that is one."""

Change = Callable[[Array], Array]

_OTHERWISE: tuple[tuple[str, Change], ...] = (
    ("4 times as large", lambda value: 4 * value),
    ("positive", np.abs),
    ("64 times as large", lambda value: 64 * value),
    ("a tenth as large", lambda value: value / 10),
)
"""How floats without a range are drawn where the usual ones tell too little."""


class InputSets:
    """The inputs of a check, one set after the other.

    Those of a user are taken as they are; others are drawn, at the sizes that
    the model declares or else at usual ones. Where the source does not run at
    these, it is run at others until it does.

    Args:
        model: The source as Relay.
        reference: Runs the source.
        candidate: Runs the target.
        report: Gets notes on what was taken.
        runs: Number of sets that are drawn at the first size.
        dims: Lengths of dynamic dimensions that are not to change.
        data: Inputs of a user, instead of drawn ones.
        float16: Whether values are rounded to what float16 holds.
        seed: Seed of the inputs.
    """

    def __init__(
        self,
        model: RelayModel,
        reference: Engine,
        candidate: Engine,
        *,
        report: Report,
        runs: int = 1,
        dims: Mapping[str, int] | None = None,
        data: CheckData | None = None,
        float16: bool = False,
        seed: int = 0,
    ) -> None:
        self.reference = RememberingEngine(reference)
        self._model = model
        self._report = report
        self._runs = max(1, runs)
        self._dims = dict(dims or {})
        self._data = data
        self._float16 = float16
        self._seed = seed
        self._usual = resolve_dims(model, dims)
        self._lengths: Mapping[str, int] | None = None
        self._dtypes = _dtypes_of(model, (reference, candidate))

    def __iter__(self) -> Iterator[Mapping[str, Array]]:
        """Yield each set.

        Raises:
            CheckError: The source runs at none of the sizes tried.
            OptionError: The inputs of a user do not fit the model.
        """
        if self._data is not None:
            return self._use_given(self._data)
        sizes = declared_sizes(self._model, self._dims)
        return self._draw_declared(sizes) if sizes else self._draw_searched()

    def otherwise(self) -> Iterator[tuple[str, Mapping[str, Array]]]:
        """Yield further sets, of other floats, and how they differ; none of a user's inputs."""
        if self._lengths is None:
            return
        for number, (how, change) in enumerate(_OTHERWISE):
            yield how, self._draw(self._runs + number, self._lengths, change)

    def runs_at(self, inputs: Mapping[str, Array]) -> bool:
        """Whether the source runs on a set of inputs."""
        return self._failure(inputs) is None

    def _use_given(self, data: CheckData) -> Iterator[Mapping[str, Array]]:
        count = 0
        for sample in data.samples(self._model, self._dims, self._report):
            count += 1
            yield {
                name: self._round(value, name) if self._float16 else value
                for name, value in sample.items()
            }
        if count == 0:
            raise CheckError(f"check_data: {data.name}: there are no inputs")
        rounded = ", rounded to float16" if self._float16 else ""
        self._report.notes.append(f"checked with {count} given inputs ({data.name}){rounded}")

    def _draw_declared(self, sizes: Sequence[Mapping[str, int]]) -> Iterator[Mapping[str, Array]]:
        """Yield sets at all sizes that the model declares, those left out at which it fails."""
        done: list[str] = []
        failure = None
        for lengths in sizes:
            inputs = self._draw(0, lengths)
            failed = self._failure(inputs)
            if failed is not None:
                failure = failed
                note = f"the source does not run at {size_text(lengths)}, which is declared"
                self._report.notes.append(f"{note}: {failed}")
                continue
            done.append(size_text(lengths))
            self._lengths = self._lengths or lengths
            yield inputs
            for run in range(1, self._runs if len(done) == 1 else 1):
                yield self._draw(run, lengths)
        if not done:
            raise CheckError(f"the source runs at no size that is declared: {failure}")
        self._report.notes.append(f"dynamic dimensions were checked at {'; '.join(done)}")

    def _draw_searched(self) -> Iterator[Mapping[str, Array]]:
        """Yield sets at the usual size, or the first other one at which the source runs."""
        lengths: Mapping[str, int] = self._usual
        inputs: Mapping[str, Array] = self._draw(0, lengths)
        remark, failed = "", self._failure(inputs)
        if failed is not None:
            lengths, inputs = self._search_size(failed)
            remark = f" (the source does not run at {size_text(self._usual)})"
        self._lengths = lengths
        yield inputs
        for run in range(1, self._runs):
            yield self._draw(run, lengths)
        done = [size_text(lengths)]
        for times in (3, 1):  # At its own lengths the source itself is asked.
            other = {**lengths, **opened_sizes(self._model, times), **self._dims}
            if other.keys() == lengths.keys() and size_text(other) not in done:
                inputs = self._draw(0, other)
                if self._failure(inputs) is None:
                    done.append(size_text(other))
                    yield inputs
        if lengths:
            checked = f"dynamic dimensions were checked at {'; '.join(done)}"
            self._report.notes.append(checked + remark)

    def _search_size(self, failed: CheckError) -> tuple[Mapping[str, int], Mapping[str, Array]]:
        """Return another size at which the source runs, and inputs of it."""
        if not set(self._usual) - set(self._dims):
            types = [input_type(variable) for variable in self._model.inputs()]
            if all("float" in type_.dtype for type_ in types):
                raise failed
            raise CheckError(f"{failed} (check_data gives other inputs)") from failed
        tried = [size_text(self._usual)]
        for lengths in further_sizes(self._model, self._usual, self._dims):
            inputs = self._draw(0, lengths)
            if self._failure(inputs) is None:
                return lengths, inputs
            tried.append(size_text(lengths))
        raise CheckError(
            f"{failed} (tried at {'; '.join(tried)}; check_dim gives lengths, check_data inputs)"
        )

    def _failure(self, inputs: Mapping[str, Array]) -> CheckError | None:
        """Run the source and return why it does not, if so; a crash is raised."""
        try:
            run_engine(self.reference, inputs)
        except EngineEnded:
            raise
        except CheckError as error:
            return error
        return None

    def _draw(
        self, run: int, lengths: Mapping[str, int], change: Change | None = None
    ) -> dict[str, Array]:
        return random_inputs(
            self._model,
            seed=(self._seed, run),
            lengths=lengths,
            float16=self._float16,
            dtypes=self._dtypes,
            change=change,
        )

    def _round(self, value: Array, name: str) -> Array:
        return _round_to(value, [*self._dtypes.get(name, ()), "float16"])


def _dtypes_of(model: RelayModel, engines: Sequence[Engine]) -> dict[str, list[str]]:
    """Return for each input of a model the dtypes that engines declare for it."""
    names = [variable.name_hint for variable in model.inputs()]
    found: dict[str, list[str]] = {name: [] for name in names}
    for engine in engines:
        for own, name in match_names(list(engine.inputs), names).items():
            found[name].append(engine.inputs[own])
    return found


def random_inputs(
    model: RelayModel,
    *,
    seed: int | Sequence[int],
    lengths: Mapping[str, int],
    float16: bool = False,
    dtypes: Mapping[str, Sequence[str]] | None = None,
    change: Change | None = None,
) -> dict[str, Array]:
    """Return a value for each input of a model; equal seeds give equal values.

    Args:
        model: The model.
        seed: Seed of NumPy's default generator.
        lengths: Length of each dynamic dimension, as :func:`resolve_dims` gives them. One that
            is left out has length 2 as first axis, 64 as another.
        float16: Whether float32 values are rounded to what float16 holds.
        dtypes: Further dtypes by input that are to hold its values.
        change: What is done to floats that nothing limits.

    Raises:
        CheckError: An input has no tensor type.
    """
    generator = np.random.default_rng(seed)
    constraints = input_constraints(model, lengths)
    values = {}
    for variable in model.inputs():
        name, dtype = variable.name_hint, input_type(variable).dtype
        narrow = [*(dtypes or {}).get(name, ()), *(["float16"] if float16 else [])]
        drawn = _Sampler(generator, shape_at(variable, lengths), dtype, narrow, change)
        values[name] = _round_to(drawn.value(name, constraints), narrow)
    return values


def input_constraints(model: RelayModel, lengths: Mapping[str, int]) -> InputConstraints:
    """Return what limits the inputs of a model: its graph, and that some are images."""
    found = find_constraints(model, lengths)
    for variable in model.inputs():
        name = variable.name_hint
        space = model.meta.extra.get(f"{name}.color_space", "FLOAT16")
        if "FLOAT16" not in space and not model.meta.extra.get(f"{name}.scale"):
            found.ranges.setdefault(name, PIXELS)
    return found


class _Sampler:
    """Values of one input."""

    def __init__(
        self,
        generator: np.random.Generator,
        shape: tuple[int, ...],
        dtype: str,
        narrow: Sequence[str],
        change: Change | None = None,
    ) -> None:
        self._generator = generator
        self._change = change
        self._shape = shape
        self._dtype = dtype
        self._most = min(
            (_EXACT[each] for each in (dtype, *narrow) if each in _EXACT), default=None
        )

    def value(self, name: str, constraints: InputConstraints) -> Array:
        """Draw the value of an input, within its constraints if there are any."""
        regions = constraints.regions.get(name)
        if regions is not None and len(self._shape) == 2 and self._shape[1] in (4, 5, 6):
            return self._draw_regions(regions).astype(numpy_dtype(self._dtype))
        if name in constraints.fractions and self._dtype.startswith("float"):
            return self._generator.random(self._shape).astype(numpy_dtype(self._dtype))
        if name in constraints.masks:
            return self._draw_mask().astype(numpy_dtype(self._dtype))
        return self._draw_within(constraints.ranges.get(name))

    def _draw_within(self, bounds: tuple[int, int] | None) -> Array:
        kind = numpy_dtype(self._dtype)
        if self._dtype == "bool":
            return self._generator.integers(0, 2, self._shape).astype(bool)
        whole = self._dtype.lstrip("u").startswith("int")
        if bounds is None and not whole:
            drawn = np.asarray(self._generator.standard_normal(self._shape))
            return (drawn if self._change is None else self._change(drawn)).astype(kind)
        usual = _UNLIMITED.get(self._dtype, (0, 99))
        low, high = self._draw_bounds(usual if bounds is None else bounds, bounds is None)
        return np.asarray(
            self._generator.integers(low, max(low, high), self._shape, endpoint=True)
        ).astype(kind)

    def _draw_bounds(self, bounds: tuple[int, int], unlimited: bool) -> tuple[int, int]:
        """Return the ends to draw between: no negative index, nothing too large to be held."""
        low, high = bounds
        if not unlimited:
            low = max(low, 0) if high >= 0 else max(low, high - 99)
            high = high if high < _OPEN else max(low, 99)
        return low, high if self._most is None else min(high, self._most)

    def _draw_mask(self) -> Array:
        """Draw ones and zeros; each row begins with a one, since no row may hide everything."""
        mask = self._generator.random(self._shape) < _COUNTED
        if self._shape and self._shape[-1] > 1:
            mask[..., 0] = True
        return mask

    def _draw_regions(self, regions: Regions) -> Array:
        """Draw regions: the number of the image, if any; corners, or centre, size and angle."""
        rows, columns = self._shape
        ends = [regions.width, regions.height]
        points = np.sort(self._generator.random((rows, 2, 2)) * [[ends]], axis=1)
        found = points.reshape(rows, 4)
        if columns == 6:
            angle = self._generator.random((rows, 1))
            found = np.concatenate([points.mean(1), points[:, 1] - points[:, 0], angle], axis=1)
        if regions.images is not None:
            number = self._generator.integers(0, regions.images, (rows, 1))
            found = np.concatenate([number, found], axis=1)
        return found[:, :columns]


_OPEN = 2**53
"""A range whose end is beyond this has none."""


def _round_to(value: Array, dtypes: Sequence[str]) -> Array:
    """Return floats as they are in dtypes that are narrower, if there are any."""
    if value.dtype.kind == "f":
        for narrow in filter(dtypes.__contains__, _FLOATS):
            with np.errstate(over="ignore"):
                value = value.astype(numpy_dtype(narrow)).astype(value.dtype)
    return value
