"""Files of NNEF that are malformed, or meant to harm: one error, and nothing beyond the file."""

from __future__ import annotations

import gzip
import io
import random
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any as AnyValue

import pytest
from support.nnef_files import (
    EXTENSIONS,
    NET,
    VERSION,
    WEIGHT,
    dat,
    graph,
    header,
    pack,
    write_folder,
)

import serde
import serde.relay as relay
from serde.errors import FormatError, SerdeError, UnsupportedModelError
from serde.nnef.codec import detect, load

# Texts


DEEP = 1_000_000
TEXTS = {
    "an unknown version": (NET.replace("1.0", "1.1", 1), "line 1, column 9: expected version 1.0"),
    "an older version": (NET.replace("1.0", "0.5", 1), "line 1, column 9: expected version 1.0"),
    "a version that wraps": (NET.replace("1.0", "4294967297.0", 1), "expected version 1.0"),
    "no version": (NET.replace(VERSION, ""), "line 2, column 1: expected token 'version'"),
    "nothing": ("", "line 1, column 1: expected token 'version'"),
    "a null character": (NET.replace("relu", "re\0lu"), "line 8, column 11: a null character"),
    "a control character": (graph("y = relu(x)\x01;"), r"line 5, column 16: unexpected .*x01"),
    "a control character for a number": (
        graph("y = squeeze(x, axes = [\x05]);"), r"line 5, column 28: unexpected .*x05",
    ),
    "a letter": (graph("y = relu(\u00e9);"), "line 5, column 14: unexpected character '\u00e9'"),
    "a string without end": (graph("y = relu('x);"), "line 5, column 14: a string that does not"),
    "a comment over all": (NET.replace("\n", "# "), "expected"),
    "an integer that wraps": (
        graph("y = squeeze(x, axes = [4294967296]);"), "column 28: expected an integer of at most",
    ),
    "a number beyond float32": (graph("y = add(x, 1e39);"), "column 16: expected a number in"),
    "a number of many digits": (graph(f"y = add(x, {'9' * 10**6}.0);"), "a number in float32"),
    "an integer of many digits": (graph(f"y = add(x, {'9' * 10**6});"), "an integer of at most"),
    "a long identifier": (graph(f"y = relu({'a' * 10**6});"), "line 5, column 14: undeclared"),
    "brackets": (graph(f"y = relu({'(' * DEEP}x{')' * DEEP});"), "more than 200 brackets"),
    "lists": (graph(f"y = add_n({'[' * DEEP}x{']' * DEEP});"), "more than 200 brackets"),
    "invocations": (graph("y = " + "relu(" * DEEP + "x" + ")" * DEEP + ";"), "than 200 brackets"),
    "a chain of operators": (graph("y = relu(x" + " + x" * DEEP + ");"), "than 2000 operators"),
    "a chain of signs": (graph(f"y = relu({'-' * DEEP}x);"), "more than 2000 operators"),
    "a chain of conditions": (
        graph("y = relu(" + "x if true else " * DEEP + "x);"), "more than 2000 operators",
    ),
    "a chain of types": (
        f"{EXTENSIONS}fragment f(x: integer{'[]' * DEEP}) -> (y: integer) {{ y = 1; }}\n"
        + graph("y = relu(x);", head=""),
        "line 3, column 4024: more than 2000 operators",
    ),
    "a duplicate name": (graph("y = relu(x); y = relu(x);"), "line 5, column 18: identifier 'y'"),
    "a duplicate input": (graph("y = relu(x);", inputs="x, x"), "line 2, column 14: duplicate"),
    "an undeclared tensor": (graph("y = relu(z);"), "line 5, column 14: undeclared identifier 'z'"),
    "a tensor of later": (graph("y = relu(z); z = relu(x);"), "line 5, column 14: undeclared"),
    "an output nobody gives": (graph("z = relu(x);"), "result 'y' of operation 'net' is not"),
    "an input nobody declares": (graph("y = relu(x);", inputs="x, k"), "parameter 'k' is not"),
    "an input that is computed": (
        VERSION + "graph g(x) -> (y) { (x, z) = moments(1.0, axes = [0]); y = relu(z); }",
        "line 2, column 9: input 'x' is not declared by external",
    ),
    "an external inside": (graph("y = relu(external(shape = [1]));"), "no parameter of the graph"),
    "an unknown fragment": (graph("y = other(x);"), "line 5, column 9: undefined operation"),
    "a missing operand": (graph("y = add(x);"), "parameter 'y' not assigned"),
    "an unknown parameter": (graph("y = relu(x, at = 3);"), "line 5, column"),
    "a wrong type": (graph("y = add(x, 1);"), "line 5, column 16: argument of type 'integer'"),
    "elements of no type": (graph("k = constant<?>(shape = [1], value = [1]); y = relu(x);"),
                            r"line 5, column 17: no tensor has elements of type \?"),
    "elements of text": (graph("k = variable<string>(shape = [1], label = 'v'); y = relu(x);"),
                         "line 5, column 17: no tensor has elements of type string"),
    "an update of no variable": (
        graph("z = relu(x); y = update(z, x);"), "line 5, column 29: first argument",
    ),
    "an update inside of no variable": (graph("y = relu(update(x, x));"), "expected a variable"),
    "a second update": (
        graph("v = variable(shape = [2, 3], label = 'v'); a = update(v, x); y = update(v, x);"),
        "line 5, column 5: update: variable 'v' is updated twice",
    ),
    "a division by zero": (
        graph("y = squeeze(x, axes = [-(1 / 0)]);"), "line 5, column 5: .*crashed",
    ),
    "an invocation left of =": (graph("relu(x) = relu(x);"), "line 5, column 5: .*crashed"),
    "no statement": (graph("relu(x);"), "line 5, column 5"),
    "a second graph": (NET + NET.replace(VERSION, ""), "line 11, column 1: expected token 'eof'"),
    "an extension": (
        VERSION + "extension KHR_other;\n" + graph("y = relu(x);", head=""), "line 2, column 11",
    ),
    "a negative length": (
        VERSION + "graph g(x) -> (y) { x = external<scalar>(shape = [-1]); y = relu(x); }",
        "line 2, column 9: external 'x': expected a shape",
    ),
    "more axes than any tensor": (
        VERSION + f"graph g(x) -> (y) {{ x = external<scalar>(shape = {[1] * 40}); y = relu(x); }}",
        "external 'x': expected a shape",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.thin(2)
def test_texts_that_are_refused(case: str, tmp_path: Path) -> None:
    text, message = TEXTS[case]
    path = tmp_path / "net.nnef"
    path.write_bytes(text.encode())
    with pytest.raises(FormatError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    folder = write_folder(tmp_path, NET.encode() + b"# \xff\n")
    with pytest.raises(FormatError, match=f"at byte {len(NET.encode()) + 2}: expected UTF-8"):
        load(folder)


QUANTIZED = {
    "an unknown tensor": ('"q": linear_quantize(min = 0.0, max = 1.0, bits = 8);',
                          "line 1, column 1: no tensor is called 'q'"),
    "an unknown fragment": ('"y": other(min = 0.0);', "line 1, column 6: undefined quant"),
    "a tensor twice": ('"y": leaky_relu(alpha = 1.0);\n"y": leaky_relu(alpha = 1.0);',
                       "line 2, column 1: duplicate"),
    "an operand twice": ('"y": relu(x = 1.0);', "line 1, column 18: argument 'x'"),
    "a missing parameter": ('\n"y": linear_quantize(min = 0.0, bits = 8);', "line 2, column 41"),
    "a list for nothing": ('"y": linear_quantize(min = [[]], max = 1.0, bits = 8);',
                           "line 1, column 1: .*crashed"),
    "a tensor as parameter": ('"y": linear_quantize(min = x, max = 1.0, bits = 8);',
                              "line 1, column 28"),
    "an expression": ('"y": linear_quantize(min = 0.0, max = 1.0, bits = -(1 / 0));',
                      "line 1, column 5"),
    "brackets": ('"y": linear_quantize(min = ' + "[" * DEEP, "more than 200 brackets"),
    "an integer that wraps": ('"y": linear_quantize(min = 0.0, max = 1.0, bits = 4294967304);',
                              "line 1, column 51: expected an integer"),
    "a null character": ('"y\0": linear_quantize(min = 0.0, max = 1.0, bits = 8);',
                         "line 1, column 3: a null character"),
}  # fmt: skip


@pytest.mark.parametrize("case", QUANTIZED)
def test_quantisation_that_is_refused(case: str, tmp_path: Path) -> None:
    text, message = QUANTIZED[case]
    folder = write_folder(tmp_path, graph("y = relu(x);"), {}, text)
    with pytest.raises(FormatError, match=message) as caught:
        load(folder)
    assert str(folder / "graph.quant") in str(caught.value)


# Labels


LABELS = {
    "../a": "leaves the directory",
    "b/../../a": "leaves the directory",
    "..": "leaves the directory",
    "/etc/a": "is an absolute path",
    "C:a": "names a drive",
    "C:\\a": "names a drive",
    "..\\a": "leaves the directory",
    "b\\a": "contains a backslash",
    "": "is empty",
    "missing": "No such file",
}


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
@pytest.mark.parametrize("label", LABELS)
def test_labels_that_leave_the_folder(label: str, packed: bool, tmp_path: Path) -> None:
    (tmp_path / "a.dat").write_bytes(dat(WEIGHT))
    text = graph(f"v = variable(shape = [2, 3], label = '{label}'); y = relu(v);")
    source = write_folder(tmp_path / "net", text, {})
    message = LABELS[label]
    if packed:
        source = pack(source, tmp_path / "net.tgz")
        message = message.replace("No such file", "has no member 'missing.dat'")
    with pytest.raises(FormatError, match=message):
        load(source)


@pytest.mark.parametrize("place", ["block/w.dat", "block", "graph.nnef", "graph.quant"])
def test_links_are_not_followed(place: str, tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "net", quantization="")
    (folder / place).rename(tmp_path / "elsewhere")
    (folder / place).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FormatError, match="symbolic link"):
        load(folder)


# Tensor files


GIB = 2**30
HEADERS: dict[str, tuple[bytes, str]] = {
    "nothing": (b"", "expected a header of 128 bytes, found 0"),
    "half a header": (header()[:64], "expected a header of 128 bytes, found 64"),
    "another magic": (header(magic=b"NE") + bytes(24), "at byte 0: expected a tensor file"),
    "another version": (header(version=b"\x02\x00") + bytes(24), "at byte 2: expected version 1.0"),
    "a later version": (header(version=b"\x01\x01") + bytes(24), "at byte 2: expected version 1.0"),
    "a shorter file": (header() + bytes(20), "at byte 4: .* claims 24 bytes of data, found 20"),
    "a longer file": (header() + bytes(28), "at byte 4: .* claims 24 bytes of data, found 28"),
    "48 GiB": (header(extents=(48, GIB // 4)) + bytes(24), r"at byte 12: .* takes 51539607552"),
    "a product that wraps": (header(extents=(2**31, 2**31), length=0), "at byte 12"),
    "a product that wraps to the size": (
        header(extents=(2**31 + 1, 2**31), length=24) + bytes(24), "at byte 12",
    ),
    "4 GiB of data": (header(length=2**32 - 1) + bytes(24), "at byte 4"),
    "nine axes": (header(rank=9) + bytes(24), "at byte 8: expected at most 8 axes, found 9"),
    "axes beyond counting": (header(rank=2**32 - 1) + bytes(24), "at byte 8"),
    "24 bits": (header(bits=24, length=18) + bytes(18), "at byte 44: no item type 0 has 24 bits"),
    "no bits": (header(bits=0, length=0), "at byte 44: no item type 0 has 0 bits"),
    "4 bits": (header(bits=4, kind=1, length=3) + bytes(3), "no item type 1 has 4 bits"),
    "an unknown type": (header(kind=6) + bytes(24), "at byte 44: no item type 6 has 32 bits"),
    "a type of a vendor": (header(kind=0x10000) + bytes(24), "at byte 44: no item type 65536"),
    "another shape": (header(extents=(3, 2)) + bytes(24), r"expected shape \[2, 3\], found \[3, 2"),
    "another rank": (header(rank=1, extents=(6,)) + bytes(24), r"expected shape \[2, 3\], found"),
    "integers": (header(kind=4) + bytes(24), "expected elements of type scalar, found int32"),
    "logical": (header(kind=5, bits=8, length=6) + bytes(6), "expected elements of type scalar"),
}  # fmt: skip


@pytest.mark.parametrize("packed", [False, True], ids=["folder", "archive"])
@pytest.mark.parametrize("case", HEADERS)
def test_tensor_files_that_are_refused(case: str, packed: bool, tmp_path: Path) -> None:
    data, message = HEADERS[case]
    source = write_folder(tmp_path / "net", NET, {"block/w": data})
    if packed:
        source = pack(source, tmp_path / "net.tgz")
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=message) as caught:
            load(source)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
    assert str(source) in str(caught.value)


def test_a_file_that_shrinks_underneath(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    weight = load(folder).weights["block/w"]
    (folder / "block/w.dat").write_bytes(header())
    with pytest.raises(FormatError, match="changed while it was being read"):
        weight.array()


# Archives


def archive(path: Path, *members: tuple[str, bytes | str]) -> Path:
    """Write an archive: members by name, links where a text says where to."""
    with tarfile.open(path, "w:gz") as file:
        for name, content in members:
            info = tarfile.TarInfo(name)
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                file.addfile(info)
            else:
                info.size = len(content)
                file.addfile(info, io.BytesIO(content))
    return path


GRAPH = ("graph.nnef", NET.encode())
DATA = ("block/w.dat", dat(WEIGHT))
ARCHIVES: dict[str, tuple[list[tuple[str, bytes | str]], str]] = {
    "no graph": ([DATA], "expected an archive with graph.nnef"),
    "no data": ([GRAPH], "has no member 'block/w.dat'"),
    "two graphs": (
        [(f"a/{GRAPH[0]}", GRAPH[1]), (f"b/{GRAPH[0]}", GRAPH[1])],
        "expected one graph, found a/",
    ),
    "a member twice": ([GRAPH, DATA, DATA], "block/w.dat occurs twice"),
    "a link for data": ([GRAPH, ("block/w.dat", "/etc/passwd")], "found a symbolic link"),
    "a link for a graph": ([("graph.nnef", "/etc/passwd"), DATA], "found a symbolic link"),
    "data outside": ([GRAPH, ("../block/w.dat", DATA[1])], "has no member 'block/w.dat'"),
    "data elsewhere": ([("top/graph.nnef", GRAPH[1]), DATA], "has no member 'top/block/w.dat'"),
}


@pytest.mark.parametrize("case", ARCHIVES)
def test_archives_that_are_refused(case: str, tmp_path: Path) -> None:
    members, message = ARCHIVES[case]
    path = archive(tmp_path / "net.nnef.tgz", *members)
    with pytest.raises(FormatError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


@pytest.mark.wide
def test_an_archive_that_unpacks_without_measure(tmp_path: Path) -> None:
    plain = pack(write_folder(tmp_path / "net"), tmp_path / "net.tar", mode="w").read_bytes()
    info = tarfile.TarInfo("zeros.dat")
    info.size = 2**32
    block = info.tobuf()
    path = tmp_path / "net.tgz"
    with gzip.open(path, "wb") as file:
        file.write(block)
        for _ in range(100):
            file.write(bytes(2**20))
        file.write(plain)
    assert not detect(path)
    with pytest.raises(FormatError, match="out of proportion"):
        load(path)


# Mutations


SPECIAL = b"()[]{}<>=;,'\"-!+*#?\0 0x9"


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Return bytes with one to three places changed, cut, doubled or moved."""
    found = bytearray(data)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        start = rng.randrange(len(found) + 1)
        stop = min(len(found), start + rng.choice([1, 1, 2, 8, 40]))
        piece = bytes(found[start:stop])
        other = rng.randrange(len(found) + 1)
        change: Callable[[], AnyValue] = rng.choice(
            [
                lambda start=start, stop=stop: found.__delitem__(slice(start, stop)),
                lambda start=start, piece=piece: found.__setitem__(slice(start, start), piece),
                lambda other=other, piece=piece: found.__setitem__(slice(other, other), piece),
                lambda start=start: found.__setitem__(
                    slice(start, start + 1), bytes([rng.randrange(256)])
                ),
                lambda start=start: found.insert(start, rng.choice(SPECIAL)),
            ]
        )
        change()
    return bytes(found)


RICH = graph(
    "w = variable<scalar>(shape = [2, 3], label = 'block/w'); n = update(w, x);\n"
    "    [a, b] = split(x, axis = 0, ratios = [1, 1]); # halves\n"
    '    c = max_pool(x, size = [1, 2], padding = [(0, 0), (0, 1)], border = "ignore");\n'
    "    k = constant<integer>(shape = [2], value = [1, -2]); y = add(w, -2.5e-1);",
    outputs="y, a, b, c, k",
)
COMPUTED = (
    f"{EXTENSIONS}fragment f<?>(x: tensor<?>, n: integer = 2) -> (y: tensor<?>[])\n"
    "{ y = [for i in [1] * n yield copy(x)]; }\n"
) + graph(
    "[u, v] = f(x, n = 1 + 1); y = -u + (v if length_of('ab') > 1 else u) * 2.0;", head=""
)  # fmt: skip
QUANTISED = '"y": linear_quantize(min = -1.0, max = 1.0, bits = 8);\n# more\n'
SEEDS = {"text": 12, "quantisation": 8, "fragments": 6, "tensor": 80, "archive": 40}
MORE_SEEDS = {"text": 400, "quantisation": 200, "fragments": 200, "tensor": 1000, "archive": 500}

MUTATION = """
import random, sys
from pathlib import Path
sys.path[:0] = {path!r}
from test_nnef_hostile import run_mutants
run_mutants({kind!r}, range({start}, {stop}), Path({folder!r}))
"""


def mutant(kind: str, rng: random.Random, folder: Path) -> Path:
    """Write a model of which a part is mutated."""
    graph_ = COMPUTED if kind == "fragments" else RICH
    parts: dict[str, bytes] = {
        "text": graph_.encode(), "quantisation": QUANTISED.encode(), "tensor": dat(WEIGHT),
    }  # fmt: skip
    part = "text" if kind == "fragments" else kind
    if part in parts:
        parts[part] = mutate(parts[part], rng)
    source = write_folder(folder, parts["text"], {"block/w": parts["tensor"]})
    (source / "graph.quant").write_bytes(parts["quantisation"])
    if kind != "archive":
        return source
    path = pack(source, folder.parent / "net.tar", mode="w")
    path.write_bytes(mutate(path.read_bytes(), rng))
    return path


def run_mutants(kind: str, seeds: range, folder: Path) -> None:
    """Read mutants; tell which one is read when it ends otherwise than in an error of serde."""
    for seed in seeds:
        print(kind, seed, flush=True)
        source = mutant(kind, random.Random(seed), folder / str(seed))
        try:
            model = load(source)
            for weight in model.weights.values():
                weight.array()
            serde.to_relay(source, format="nnef")
        except SerdeError:
            continue
    print("done")


def check_mutants(kind: str, start: int, stop: int, folder: Path) -> None:
    tests = Path(__file__).parent
    path = [str(tests), str(tests.parents[1])]
    code = MUTATION.format(path=path, kind=kind, start=start, stop=stop, folder=str(folder))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1] == "done", (done.stdout[-100:], done.stderr[-2000:])


@pytest.mark.wide
@pytest.mark.parametrize("kind", SEEDS)
def test_mutants_end_in_one_error(kind: str, tmp_path: Path) -> None:
    check_mutants(kind, 0, SEEDS[kind], tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", MORE_SEEDS)
def test_more_mutants_end_in_one_error(kind: str, tmp_path: Path) -> None:
    check_mutants(kind, SEEDS[kind], MORE_SEEDS[kind], tmp_path)


# Attributes that ask for more than there is


ATTRIBUTES = {
    "copies": ("[y, z] = copy_n(x, times = 2000000000);", "times=2000000000 for 2 results"),
    "bits": ("y = linear_quantize(x, 0.0, 1.0, bits = 2000000000);", "expected 1 to 64 bits"),
    "parts": ("[y, z] = split(x, axis = 1, ratios = [1, 1, 1]);", "3 results for 2 names"),
    "axes": ("y = sum_reduce(x, axes = [7]);", "sum_reduce"),
    "windows": ("y = max_pool(x, size = [-1, 1], stride = [0, 0]);", "max_pool"),
}


@pytest.mark.parametrize("case", ATTRIBUTES)
def test_attributes_that_are_refused(case: str, tmp_path: Path) -> None:
    body, message = ATTRIBUTES[case]
    path = tmp_path / "net.nnef"
    path.write_text(graph(body))
    with pytest.raises((FormatError, UnsupportedModelError), match=message):
        serde.to_relay(path)


@pytest.mark.parametrize("body", ["y = tile(x, repeats = [1000000000, 9]);",
                                  "y = constant(shape = [2000000000], value = [1.0]);",
                                  "y = pad(x, padding = [(2000000000, 0), (0, 0)]);"])  # fmt: skip
def test_large_tensors_take_no_memory(body: str, tmp_path: Path) -> None:
    path = tmp_path / "net.nnef"
    path.write_text(graph(body))
    tracemalloc.start()
    try:
        serde.to_relay(path)
        assert tracemalloc.get_traced_memory()[1] < 2**27
    finally:
        tracemalloc.stop()


def test_graph_quant_names_quantisers_only(tmp_path: Path) -> None:
    text = '"y": leaky_relu(alpha = 0.1);'
    folder = write_folder(tmp_path, graph("y = relu(x);"), {}, text)
    with pytest.raises(UnsupportedModelError, match=r"leaky_relu .*no quantiser of the standard"):
        serde.to_relay(folder)
    custom = {"leaky_relu": lambda x, given: relay.nn.leaky_relu(x[0], given["alpha"])}
    model = serde.to_relay(folder, custom_convert_map=custom)
    assert "leaky_relu" in model.mod.astext()
