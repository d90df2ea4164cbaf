"""PyTorch's own samples of its operators in their forms that write, judged by PyTorch.

Each is written in place through a view into a larger tensor, which is the result, and to tensors
that are given as ``out=``. Whether the operator itself is read right is tested elsewhere: a sample
of which that is not so says nothing here.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's samples need it")

from support import torch_opinfo  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

pytestmark = pytest.mark.slow

MEMORY = ("as_strided", "as_strided:partial_views", "resize_", "resize_as_", "set_", "addbmm")
"""Operators that exchange the memory of a tensor, which is refused."""

RANDOM = ("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform")
SAMPLES = 5
INFOS = {
    name: info
    for name, info in torch_opinfo.operators().items()
    if name.partition(":")[0] not in (*MEMORY, *RANDOM)
    and not name.startswith(("fft", "sparse", "masked", "_refs"))
}


def write_in_place(info: Any, first: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return a larger tensor of which an operator wrote the middle."""
    base = torch.zeros([length + 2 for length in first.shape], dtype=first.dtype)
    view = base
    for axis, length in enumerate(first.shape):
        view = view.narrow(axis, 1, length)
    view.copy_(first)
    info.inplace_variant(view, *args, **kwargs)
    return [base]


def write_out(info: Any, first: Any, args: Any, kwargs: Any) -> list[Any]:
    """Return tensors that an operator was given for its results."""
    outs = pytree.tree_map(torch.empty_like, info.op(first, *args, **kwargs))
    info.op(first, *args, **kwargs, out=outs)
    return pytree.tree_leaves(outs)


CASES = [
    pytest.param(name, dtype, write, id=f"{name}-{dtype}-{write.__name__}")
    for name, info in INFOS.items()
    for dtype in torch_opinfo.dtypes_of(info, ("float32", "int64"))
    for write, there in (
        (write_in_place, info.inplace_variant is not None),
        (write_out, info.supports_out),
    )
    if there
]


@pytest.mark.parametrize(("name", "dtype", "write"), CASES)
def test_samples_are_written_right(name: str, dtype: str, write: Callable[..., Any]) -> None:
    info = INFOS[name]
    samples = itertools.islice(torch_opinfo._samples(info, dtype), SAMPLES)
    assert not [reason for each in samples for reason in [fault(info, each, write)] if reason]


def fault(info: Any, sample: Any, write: Callable[..., Any]) -> str:
    """Return what is wrong with a sample; "" for nothing, or where it says nothing."""
    flat, spec = pytree.tree_flatten((sample.input, tuple(sample.args), dict(sample.kwargs)))
    places = [i for i, each in enumerate(flat) if isinstance(each, torch.Tensor)]
    tensors = [flat[i] for i in places]
    dtypes = {torch_opinfo._dtype_name(each) for each in tensors}
    if not isinstance(sample.input, torch.Tensor) or dtypes & torch_opinfo.COMPLEX:
        return ""

    def call(*values: Any) -> list[Any]:
        given = list(flat)
        for place, value in zip(places, values, strict=True):
            given[place] = value
        return write(info, *pytree.tree_unflatten(given, spec))

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            torch.manual_seed(0)
            expected = call(*[each.clone() for each in tensors])
            model = torch_opinfo._trace(call, tensors, False)
        except Exception:
            return ""
        found = torch_opinfo._run(model, tensors)
        if isinstance(found, str):
            own = torch_opinfo._check(info, sample, False)
            return found if own == "" else ""
        tolerance = torch_opinfo._tolerance(info, expected[0].dtype)
        return torch_opinfo._compare(found, expected, lambda: None, model, False, tolerance)
