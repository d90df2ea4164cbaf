"""What serde does where much is lacking: run as a script in an interpreter of ``sitecustomize``.

Takes an ONNX file, a folder to work in and names of checks; prints what came of each, as JSON.
"""

import hashlib
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import serde
import serde.core.systems
from serde.errors import SerdeError

TARGETS = {
    "onnx": "made.onnx",
    "mxnet": "made-symbol.json",
    "nnef": "made",
    "nnef archive": "made.nnef.tgz",
    "relay": "made.relay",
    "coreml": "made.mlpackage",
}

ARCHIVE = Path(__file__).parents[2] / "golden" / "torch" / "block_core.pt2"

PAGE = Path(__file__).parents[3] / "tools" / "site" / "convert" / "browser.py"

# Khronos' parser computes with it, in a process of its own.
EXPRESSION = b"""version 1.0;
extension KHR_enable_operator_expressions;
graph net(x) -> (y) { x = external<scalar>(shape = [2, 3]); y = relu(x) + 2.0 * x; }
"""

KILLED = """
import os, sys
import serde
replace, left = os.replace, [1]
def dying(*paths):
    left[0] -= 1
    if left[0] < 0:
        os._exit(9)
    replace(*paths)
os.replace = dying
serde.convert(*sys.argv[1:])
"""


def digests(folder: Path) -> dict[str, str]:
    """A digest of each file below a folder, as all systems call it."""
    files = sorted(each for each in folder.rglob("*") if each.is_file())
    return {
        each.relative_to(folder).as_posix(): hashlib.sha256(each.read_bytes()).hexdigest()
        for each in files
    }


def convert_to_all(net: Path, folder: Path) -> dict[str, str]:
    """Convert a net to each format and back from there; return digests of all that was made."""
    for name, target in TARGETS.items():
        (folder / name).mkdir()
        extra = {"save_as_external_data": True} if name == "onnx" else {}
        form = name.partition(" ")[0]
        serde.convert(net, folder / name / target, target_format=form, **extra)
        serde.convert(folder / name / target, folder / name / "back.onnx")
    serde.convert(ARCHIVE, folder / "torch.onnx")
    (folder / "expression").mkdir()
    (folder / "expression" / "graph.nnef").write_bytes(EXPRESSION)
    serde.convert(folder / "expression", folder / "expression.onnx")
    return digests(folder)


def refusal(function: Callable[[], Any]) -> str:
    """What an error says that a call raises."""
    try:
        function()
    except (SerdeError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def converts(net: Path, folder: Path) -> Any:
    return convert_to_all(net, folder)


def converts_in_a_page(net: Path, folder: Path) -> Any:
    """What the page does that converts in the browser."""
    spec = spec_from_file_location("browser", PAGE)
    assert spec is not None
    assert spec.loader is not None
    page = module_from_spec(spec)
    spec.loader.exec_module(page)
    found = page.look(str(net.parent))
    for target in page.TARGETS:
        made = page.convert(str(net.parent), found["name"], target, str(folder / target))
        assert "files" in made, made
    return [hashlib.sha256(found["page"].encode()).hexdigest(), digests(folder)]


def checks(net: Path, folder: Path) -> Any:
    report = serde.convert(net, folder / "made.onnx", check=True, opset=15)
    return [[each.passed for each in report.verdicts], list(report.engines)]


def runs_batches(net: Path, folder: Path) -> Any:
    aborts = folder / "aborts.py"
    aborts.write_text("import os\nos.abort()\n", encoding="utf-8")
    sources = [str(net), {"source": str(net), "target": "bad.onnx", "converters": [str(aborts)]}]
    batch = {"to": "onnx", "out": folder / "out"}
    report = serde.batch(sources, **batch)
    refused = [
        refusal(lambda given=given: serde.batch(sources, **batch, **given))
        for given in ({"memory_limit": 2**28}, {"sandbox": True})
    ]
    ended = {Path(each.target).name: [each.status, each.error] for each in report}
    return [ended, refused, sorted(os.listdir(folder / "out"))]


def survives_kills(net: Path, folder: Path) -> Any:
    """A run is killed between the renames of a pair of files; then another one goes on."""
    target = folder / "pair-symbol.json"
    serde.convert(net, target)
    other = folder / "other.onnx"
    serde.convert(net, other, opset=15, rename_outputs={"y": "z"})
    command = [sys.executable, "-c", KILLED, str(other), str(target)]
    code = subprocess.run(command, check=False).returncode
    left = sorted(each.name for each in folder.iterdir() if each.name.startswith(".serde-"))
    between = refusal(lambda: serde.to_relay(target))
    serde.convert(other, target)
    outputs = serde.to_relay(target).meta.outputs
    after = sorted(each.name for each in folder.iterdir() if each.name.startswith(".serde-"))
    return [code, len(left), between.replace(str(folder), ""), list(outputs), len(after)]


def keeps_what_cannot_be_replaced(net: Path, folder: Path) -> Any:
    """The second file of a pair is open elsewhere: the first comes back, and nothing is left."""
    target = folder / "pair-symbol.json"
    serde.convert(net, target)
    before = digests(folder)
    other = folder.parent / "named.onnx"
    serde.convert(net, other, rename_outputs={"y": "z"})
    with target.open("rb"):
        said = refusal(lambda: serde.convert(other, target))
    return [said.replace(str(folder), ""), digests(folder) == before]


def refuses_names(net: Path, folder: Path) -> Any:
    """Names that Windows has for devices, or does not have."""
    names = ("NUL.onnx", "com1.onnx", "a:b.onnx", "fine.onnx")
    return [refusal(lambda name=name: serde.convert(net, folder / name)) for name in names]


CHECKS = {
    each.__name__: each
    for each in (
        *(converts, checks, runs_batches, survives_kills, keeps_what_cannot_be_replaced),
        *(refuses_names, converts_in_a_page),
    )
}


def main() -> None:
    assert not hasattr(os, "preadv")
    assert not os.supports_dir_fd
    serde.core.systems._WINDOWS = os.environ["SERDE_LACKING"] == "windows"
    net, root = Path(sys.argv[1]), Path(sys.argv[2])
    found: dict[str, Any] = {}
    for name in sys.argv[3:]:
        (root / name).mkdir()
        try:
            found[name] = CHECKS[name](net, root / name)
        except Exception:
            found[name] = traceback.format_exc()
        found[name] = [found[name], sorted(map(str, root.rglob(".serde-*")))]
    print(json.dumps(found))


if __name__ == "__main__":
    main()
