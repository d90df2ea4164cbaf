"""The process of a model reads its sources and writes its target, whatever code it runs."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from support.batch_nets import write_nets

import serde
from serde.errors import OptionError
from serde.fleet.batching.sandbox import has_landlock

pytestmark = pytest.mark.skipif(not has_landlock(), reason="the kernel has no Landlock")

TRIES = """
import json, os, pathlib, socket, subprocess

import serde

@serde.imports("Gate")
def import_gate(ctx, x):
    return x

def attempt(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__
    return "done"

private, out, port = pathlib.Path({private!r}), pathlib.Path({out!r}), {port}
def run_cat():
    done = subprocess.run(["cat", private / "key"], capture_output=True, text=True)
    if "denied" in done.stderr:
        raise PermissionError

found = {{
    "read by a child": attempt(run_cat),
    "read": attempt(lambda: (private / "key").read_text()),
    "list": attempt(lambda: os.listdir(private)),
    "write": attempt(lambda: (private / "new").write_text("x")),
    "remove": attempt(lambda: (private / "key").unlink()),
    "truncate": attempt(lambda: os.truncate(private / "key", 0)),
    "rename": attempt(lambda: os.rename(private / "key", out / "key")),
    "change a source": attempt(lambda: open({source!r}, "ab").close()),
    "connect": attempt(lambda: socket.create_connection(("127.0.0.1", port), 1).close()),
}}
(out / "found.json").write_text(json.dumps(found))
"""


def what_code_can_do(folder: Path, *, sandbox: bool | None) -> dict[str, str]:
    """What a file of converters finds that it can do."""
    private, out = folder / "private", folder / "out"
    private.mkdir()
    out.mkdir()
    (private / "key").write_text("secret")
    write_nets(folder / "nets", 1)
    source = next((folder / "nets").glob("*.onnx"))
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = TRIES.format(
            private=str(private), out=str(out), port=server.getsockname()[1], source=str(source)
        )
        (folder / "code.py").write_text(code)
        serde.batch(
            source,
            to="nnef",
            out=out,
            workers=1,
            converters=str(folder / "code.py"),
            sandbox=sandbox,
        )
    assert list(out.glob("*.nnef"))
    found: dict[str, str] = json.loads((out / "found.json").read_text())
    return found


def test_code_reaches_nothing_but_sources_and_target(tmp_path: Path) -> None:
    found = what_code_can_do(tmp_path, sandbox=None)
    assert {what for what, said in found.items() if said != "PermissionError"} == set()
    assert (tmp_path / "private" / "key").read_text() == "secret"
    assert sorted(path.name for path in (tmp_path / "private").iterdir()) == ["key"]


@pytest.mark.wide
def test_without_it_code_does_as_it_likes(tmp_path: Path) -> None:
    """Which shows that the test above would notice."""
    assert "PermissionError" not in what_code_can_do(tmp_path, sandbox=False).values()


def test_a_sandbox_that_the_kernel_lacks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("serde.fleet.batching.api.has_landlock", lambda: False)
    with pytest.raises(OptionError, match="this kernel has no Landlock"):
        serde.batch(tmp_path, to="onnx", out=tmp_path / "out", sandbox=True)
