"""Archives of PyTorch with inputs, attributes and steps that are odd."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import itertools
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.case import Case
from fuzz.mutators.archives import read_zip, write_zip

__all__ = ["make_cases"]


def make_cases() -> Iterator[Case]:
    if importlib.util.find_spec("torch") is None:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from itertools.chain(_scripts(), _quantized(), _steps(), _programs())


def _saved(torch: Any, script: Any) -> bytes:
    made = io.BytesIO()
    torch.jit.save(script, made)
    return made.getvalue()


def _scripts() -> Iterator[Case]:
    import torch

    from fuzz.odd.torch_scripts import SCRIPTS

    for name, (module, shapes) in SCRIPTS.items():
        files = {"m.pt": _saved(torch, torch.jit.script(module().eval()))}
        yield Case.of("torch", f"odd-{name}", files, input_shapes=shapes)
    for name in ("attributes", "branches", "strided", "counter"):
        traced = torch.jit.trace(SCRIPTS[name][0]().eval(), torch.ones(4, 3), check_trace=False)
        shapes = {"x": [4, 3]}
        yield Case.of(
            "torch", f"odd-traced-{name}", {"m.pt": _saved(torch, traced)}, input_shapes=shapes
        )


def _quantized() -> Iterator[Case]:
    import torch

    from fuzz.odd.torch_scripts import QUANTIZED

    for name, (make, shape) in QUANTIZED.items():
        with contextlib.suppress(RuntimeError):  # Some engines have no such kernels.
            script = torch.jit.script(make().eval())
            first = list(script.graph.inputs())[1].debugName().partition(".")[0]
            shapes = {first: shape}
            files = {"m.pt": _saved(torch, script)}
            yield Case.of("torch", f"odd-packed-{name}", files, input_shapes=shapes)


_PICKLES = (
    b"\x80\x02.", b"\x80\x02N.", b"\x80\x02]q\x00(K\x01K\x02e.", b"\x80\x02(K\x010.", b"\x80\x022.",
    b"\x80\x02K\x01\x94.", b"\x80\x02(1.", b"\x80\x02h\x09.", b"\x80\x02r\xff\xff\xff\xff.",
    b"\x80\x02",
    b"\x80\x02cos\nsystem\n.", b"\x80\x02X\xff\xff\xff\x7fa.",
    b"\x80\x02" + b"(" * 3000 + b"t" * 3000 + b".",
    b"\x80\x02" + b"]" * 3000 + b".", b"\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\xff.",
    b"\xff", b"",
    b"\x80\x02}(K\x01K\x02u.", b"\x80\x02K\x012.", b"\x80\x02P0\n.", b"\x80\x02Q.", b"\x80\x02R.",
)  # fmt: skip
_SOURCES = (
    b"x" * 70_000, b"(" * 3000, b"# " + b"a" * 5000, b"\xff\xfe", b"a = " + b"1 + " * 3000 + b"1\n",
    b" " * 3000 + b"x\n", b"class A:\n  def f(self):\n    return (" + b"a, " * 3000 + b")\n",
)  # fmt: skip


def _steps() -> Iterator[Case]:
    """A script of which one member is another: steps of pickles, and sources, that are odd."""
    import torch
    from torch import nn

    members = read_zip(_saved(torch, torch.jit.script(nn.Linear(3, 4).eval())))
    assert members is not None
    changes: list[tuple[str, Callable[[bytes], bytes]]] = []
    for name, content in members:
        texts: tuple[bytes, ...] = ()
        if name.endswith(".pkl"):
            texts = _PICKLES
        elif name.endswith(".py"):
            texts = (*_SOURCES, *(content + b"\n" + each for each in _SOURCES))
        elif name.endswith(("version", "byteorder", "debug_pkl")):
            texts = (b"", b"0", b"99", b"x", b"big", b"\x80\x02" + b"(" * 3000)
        changes += [(name, lambda _old, text=text: text) for text in texts]
    for number, (name, change) in enumerate(changes):
        made = write_zip([(n, change(c) if n == name else c) for n, c in members], b"")
        yield Case.of("torch", f"odd-step{number}", {"m.pt": made}, input_shapes={"input": [2, 3]})


def _programs() -> Iterator[Case]:
    """Exported programs with views, several kinds of arguments, names and weights."""
    import torch
    from torch import nn

    class Views(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            whole = torch.arange(4000.0)
            self.register_buffer("turned", whole[:1200].reshape(30, 40).t())
            self.register_buffer("every", whole[::2][:30])
            self.register_buffer("none", torch.zeros(0, 3))
            self.register_buffer("repeated", torch.ones(1, 30).expand(40, 30))
            self.register_buffer("low", torch.ones(30, dtype=torch.bfloat16))
            self.register_buffer("sparse", whole[::100][:30])

        def forward(self, x: Any) -> Any:
            y = x + self.turned + self.every + self.repeated + self.low.float() + self.sparse
            same = torch.as_strided(y, (40, 30), (30, 1)) + torch.as_strided(y, (40, 30), (1, 40))
            return same + self.none.sum()

    class Arguments(nn.Module):
        def forward(self, x: Any, pair: Any, count: int, scale: float, flag: bool) -> Any:
            y = torch.cat([x, pair[0]], dim=-1)[:, [0, 1]] if flag else x
            z = torch.einsum("ab,cb->ac", y, y).to(torch.float64) * scale + count
            z = z.clone()
            z[:, torch.tensor([0])] = 1.0
            found = {"z": z[None, torch.tensor([0, 1])]}
            low, high = torch.aminmax(x, dim=0)
            return (
                found,
                torch.split(x, [1, x.shape[1] - 1], 1),
                low,
                high,
                torch.full((2,), 1 + 2j),
            )

    x = torch.ones(4, 3)
    for name, module, given in (
        ("views", Views(), (torch.ones(40, 30),)),
        ("arguments", Arguments(), (x, (x, x), 3, 0.5, True)),
    ):
        made = io.BytesIO()
        torch.export.save(torch.export.export(module.eval(), given), made)
        yield Case.of("torch", f"odd-export-{name}", {"m.pt2": made.getvalue()})
        half = made.getvalue()
        members = read_zip(half)
        assert members is not None
        for number, (member, content) in enumerate(members):
            for other in (b"", content[: len(content) // 2], b"[" * 5000, b"\xff" + content):
                changed = write_zip([(n, other if n == member else c) for n, c in members], b"")
                files = {"m.pt2": changed}
                yield Case.of("torch", f"odd-member{number}-{name}-{len(other)}", files)
