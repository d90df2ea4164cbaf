"""Archives of TorchScript that are meant to harm: one error before PyTorch goes too far."""

from __future__ import annotations

import contextlib
import io
import struct
import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import serde  # noqa: E402
from serde.core.limits import spending  # noqa: E402
from serde.errors import FormatError, LimitError  # noqa: E402
from serde.io.zips import Archive  # noqa: E402
from serde.torch.script.vetting import check_archive  # noqa: E402

SIZES = b"(K\x03K\x04t"
STRIDES = b"(K\x04K\x01t"
"""Sizes and strides of the weight in the pickle."""

RESULT = "    w = self.w\n    return torch.matmul(x, w)\n"


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.w


@pytest.fixture(scope="module")
def members() -> dict[str, bytes]:
    """The members of an honest archive, its class being called Net."""
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.script(Net().eval()), file)
    with zipfile.ZipFile(file) as archive:
        return {name.partition("/")[2]: archive.read(name) for name in archive.namelist()}


def read(tmp_path: Path, members: Mapping[str, bytes]) -> None:
    """Read an archive.

    Raises:
        SerdeError: It is refused.
    """
    path = tmp_path / "bad.pt"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(f"bad/{name}", content)
    serde.to_relay(path, input_shapes={"x": (2, 3)})


def code(members: Mapping[str, bytes], body: str, more: str = "") -> dict[str, bytes]:
    """Return an archive with another body of ``forward``, and with more methods."""
    name = next(each for each in members if each.startswith("code/") and each.endswith(".py"))
    text = members[name].decode()
    assert RESULT in text
    return {**members, name: (text.replace(RESULT, body) + more).encode()}


def pickled(members: Mapping[str, bytes], old: bytes, new: bytes) -> dict[str, bytes]:
    """Return an archive with other bytes in the pickle of the module."""
    assert old in members["data.pkl"]
    return {**members, "data.pkl": members["data.pkl"].replace(old, new)}


def long(number: int) -> bytes:
    """Return an integer of 32 bits as a pickle has it."""
    return b"J" + struct.pack("<i", number)


def test_an_honest_archive_is_read(tmp_path: Path, members: dict[str, bytes]) -> None:
    read(tmp_path, members)


@pytest.mark.wide
@pytest.mark.parametrize(
    "shape", [(1_000_000, 1000), (300, 1), (-3, 4)], ids=["far", "near", "negative"]
)
def test_a_weight_outside_its_storage(
    tmp_path: Path, members: dict[str, bytes], shape: tuple[int, int]
) -> None:
    claimed = b"(" + long(shape[0]) + long(shape[1]) + b"t"
    with pytest.raises(FormatError):
        read(tmp_path, pickled(members, SIZES, claimed))


@pytest.mark.wide
def test_a_weight_that_repeats_its_storage(tmp_path: Path, members: dict[str, bytes]) -> None:
    claimed = b"(" + long(1_000_000) + long(1_000_000) + b"t(K\x00K\x00t"
    with pytest.raises(
        LimitError, match=r"w, a view, .* bytes of which 48 are stored, would take .* constants"
    ):
        read(tmp_path, pickled(members, SIZES + STRIDES, claimed))


METHODS = "  def f0({}\n    x: Tensor) -> Tensor:\n    return torch.relu(x)\n" + "".join(
    f"  def f{i}({{}}\n    x: Tensor) -> Tensor:\n    a = (self).f{i - 1}(x, )\n"
    f"    return (self).f{i - 1}(a, )\n"
    for i in range(1, 30)
)


def test_methods_that_call_twice(tmp_path: Path, members: dict[str, bytes]) -> None:
    name = next(each for each in members if each.startswith("code/") and each.endswith(".py"))
    text = members[name].decode()
    own = text[text.index("def forward(") + len("def forward(") :].partition("\n")[0]
    with pytest.raises(LimitError, match="functions that are read where they are called"):
        read(tmp_path, code(members, "    return (self).f29(x, )\n", METHODS.replace("{}", own)))


BODIES = {
    "calls": ("    return " + "torch.relu(" * 200_000 + "x" + ")" * 200_000 + "\n", "brackets"),
    "brackets": ("    return " + "(" * 100_000 + "x" + ")" * 100_000 + "\n", "brackets"),
    "sums": ("    return " + "x + " * 100_000 + "x\n", "operators"),
    "signs": ("    return torch.add(x, " + "- " * 100_000 + "1)\n", "operators"),
    "attributes": ("    return x" + ".T" * 100_000 + "\n", "operators"),
    "elements": ("    return x" + "[0]" * 100_000 + "\n", "operators"),
    "conditions": ("    return " + "x if True else " * 100_000 + "x\n", "operators"),
    "blocks": (
        "".join("  " * (i + 2) + "if bool(x):\n" for i in range(2000)) + "    return x\n",
        "operators",
    ),
}


@pytest.mark.parametrize(("body", "message"), BODIES.values(), ids=BODIES)
def test_code_that_is_nested_too_deep(
    tmp_path: Path, members: dict[str, bytes], body: str, message: str
) -> None:
    with pytest.raises(FormatError, match=f"{message} nested more|more than 1000 {message}"):
        read(tmp_path, code(members, body))


LIMITED = {
    "tuples of tuples": "    xs0 = (x, x)\n"
    + "".join(f"    xs{i} = (xs{i - 1}, xs{i - 1})\n" for i in range(1, 40))
    + "    return x\n",
    "a repeated list": "    xs = torch.mul([1], 10000000000)\n"
    "    return torch.add(x, torch.len(xs))\n",
    "lists of lists": "    xs0 = [1]\n"
    + "".join(f"    xs{i} = torch.add(xs{i - 1}, xs{i - 1})\n" for i in range(1, 40))
    + "    return torch.add(x, torch.len(xs39))\n",
}


def test_calls_of_methods_are_no_tuples(tmp_path: Path, members: dict[str, bytes]) -> None:
    """As in a DenseNet, where each layer is given the results of all before it."""
    calls = [f"    x{i} = (self).g({', '.join(f'x{j}' for j in range(i))})\n" for i in range(1, 40)]
    body = "    x0 = x\n" + "".join(calls) + "    return x39\n"
    with spending({"nodes": 1000}), pytest.raises(FormatError, match="PyTorch"):
        read(tmp_path, code(members, body))


@pytest.mark.wide
@pytest.mark.parametrize("body", LIMITED.values(), ids=LIMITED)
def test_values_that_double(tmp_path: Path, members: dict[str, bytes], body: str) -> None:
    with pytest.raises(LimitError):
        read(tmp_path, code(members, body))


PICKLES = {
    "marks": b"(" * 100_000 + b"N" + b"t" * 100_000,
    "tuples of one": b"N" + b"\x85" * 100_000,
    "lists": b"]" * 100_000 + b"a" * 99_999,
    "no stack": b"ttt",
    "nothing put there": b"h\x05",
    "an unknown step": b"\xff",
}


@pytest.mark.parametrize("pickle", PICKLES.values(), ids=PICKLES)
def test_pickles_that_are_none(tmp_path: Path, members: dict[str, bytes], pickle: bytes) -> None:
    with pytest.raises(FormatError, match=r"constants\.pkl: (no pickle|values nested)"):
        read(tmp_path, {**members, "constants.pkl": b"\x80\x02" + pickle + b"."})


def test_a_pickle_of_values_that_are_there_again(tmp_path: Path, members: dict[str, bytes]) -> None:
    doubled = b"".join(b"(h%bh%btq%b" % (bytes([i]), bytes([i]), bytes([i + 1])) for i in range(60))
    pickle = b"\x80\x02(K\x01K\x01tq\x00" + doubled + b"."
    with pytest.raises(LimitError, match="values that are there again"):
        read(tmp_path, {**members, "constants.pkl": pickle})


TEXTS = {
    "a width": 'torch.format("{:99999999999}", 1)',
    "an attribute": 'torch.format("{0.__class__}", 1)',
}


@pytest.mark.wide
@pytest.mark.parametrize("call", TEXTS.values(), ids=TEXTS)
def test_texts_are_filled_in_as_pytorch_does(
    tmp_path: Path, members: dict[str, bytes], call: str
) -> None:
    body = f"    s = {call}\n    return torch.add(x, torch.len(s))\n"
    read(tmp_path, code(members, body))


@pytest.mark.wide
def test_debug_information_that_is_damaged(tmp_path: Path, members: dict[str, bytes]) -> None:
    """PyTorch looks at it only when it is asked for a line of source code."""
    name = next(each for each in members if each.endswith(".debug_pkl"))
    for place in range(0, len(members[name]), 7):
        changed = bytearray(members[name])
        changed[place] ^= 0x41
        with contextlib.suppress(FormatError, LimitError):
            read(tmp_path, {**members, name: bytes(changed)})


def test_honest_archives_pass_the_check(tmp_path: Path) -> None:
    """Code that many lines share, and debug information of which much is there again."""
    path = tmp_path / "net.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        layer = torch.nn.TransformerEncoderLayer(8, 2).eval()
        torch.jit.save(torch.jit.script(layer), path)
    with spending(), Archive(path) as archive:
        check_archive(archive)


@pytest.mark.wide
def test_places_of_texts_that_are_not_there(tmp_path: Path, members: dict[str, bytes]) -> None:
    name = next(each for each in members if each.endswith(".debug_pkl"))
    assert b"K\x01K\x02K\x00e" in members[name]
    changed = members[name].replace(b"K\x01K\x02K\x00e", b"K\x01K\xffK\x00e")
    with pytest.raises(FormatError, match=r"the number 255 of \d+ texts"):
        read(tmp_path, {**members, name: changed})
