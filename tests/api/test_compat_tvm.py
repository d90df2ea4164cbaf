"""Scripts that import tvm, where none, a newer one or one with Relay is installed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.distribution import environment

ROOT = Path(__file__).parents[2]
HIDE = """
from importlib.machinery import PathFinder
find = PathFinder.find_spec
def find_spec(name, path=None, target=None):
    found = find(name, path, target)
    installed = name == "tvm" and found is not None and not str(found.origin).startswith({site!r})
    return None if installed else found
PathFinder.find_spec = find_spec
"""
"""Before a script: hides the TVM that is installed, not one in the folder `site`."""

WITHOUT = """
import serde.compat.tvm
import tvm, tvm.testing, tvm.relay.testing, tvm.topi.testing, tvm.relay.transform as passes
from tvm import relay, te, tir, autotvm
from tvm.contrib import graph_executor
from tvm.ir.module import IRModule
from tvm.ir.instrument import pass_instrument
from tvm.relay.backend.interpreter import ConstructorValue
from tvm.relay.op.nn import conv2d
from tvm.relay.op.annotation import compiler_begin
from tvm.relay.dataflow_pattern import *
from tvm.relay.backend import te_compiler
import serde.relay
from serde.core.optional import is_installed, require

assert relay is serde.relay and passes is tvm.transform and IRModule is tvm.IRModule
assert is_op("nn.relu")(wildcard()).match(relay.nn.relu(relay.var("x")))
assert conv2d is relay.nn.conv2d and compiler_begin is relay.op.annotation.compiler_begin
assert tvm.device("llvm -mcpu=znver3", 1) == tvm.cpu(1) and tvm.nd.array([1]).numpy() == 1
with tvm.target.Target("llvm -mcpu=znver3", host="c") as target:
    assert target.kind.name == "llvm" and str(target) == "llvm -mcpu=znver3"
lists = relay.prelude.Prelude(tvm.IRModule()).mod
ex = relay.create_executor(mod=lists)
assert isinstance(ex.evaluate(relay.Tuple([relay.const(1)])), tvm.runtime.container.ADT)
assert isinstance(ex.evaluate(lists.get_constructor("List", "Nil")()), ConstructorValue)
assert isinstance({}, tvm.ir.container.Map)
for name, device in tvm.testing.enabled_targets():
    assert tvm.target.Target(name).kind.name == "llvm" and device == tvm.cpu()
tvm.testing.assert_allclose([1, 0.1], [1.01, 0.11], 1e-2, 1e-2)
try:
    tvm.testing.assert_allclose([1.0], [1.01], 1e-3)
except AssertionError:
    n = te.size_var("n")
assert relay.TensorType((tir.indexdiv(n, 4),)) == relay.TensorType((n // 4,))
assert isinstance(n, tir.Var) and not isinstance(3, tir.Var)
x = relay.var("x", relay.TensorType((n, tir.IntImm("int32", 3), tir.Any())))
assert str(relay.nn.relu(x).checked_type) == "Tensor[(n, 3, ?), float32]"
for use in (lambda: relay.build(x), lambda: te.compute, lambda: graph_executor.GraphModule(x),
            lambda: tvm.build(x), lambda: te_compiler.get(), lambda: autotvm.task.create):
    try:
        use()
    except AttributeError as error:
        assert "serde.compile" in str(error), error
    else:
        raise AssertionError(use)
try:
    tvm.parser.parse_expr("let")
except tvm.error.DiagnosticError as error:
    assert isinstance(error, tvm.TVMError)
assert not is_installed("tvm")
try:
    require("tvm")
except serde.errors.MissingDependency:
    print("as TVM")
"""

NEWER = """
import sys
import serde.compat.tvm
assert "tvm" not in sys.modules
from tvm import relay, relax, ir
import tvm, tvm.relay.adt, serde.relay.adt
from tvm.relax.frontend.nnef import from_nnef
from serde.compat import tvm as names
from serde.core.optional import is_installed
assert tvm.relay.adt is serde.relay.adt
assert (tvm.IRModule, ir.Op, relax.expr) == ("theirs", "theirs", "theirs")
assert ir.TypeVar is relay.TypeVar and tvm.nd.array([2]).numpy() == 2
assert names.IRModule is relay.IRModule and names.ir.Op is relay.Op
assert is_installed("tvm")
print("beside TVM")
"""

OLDER = """
import warnings
with warnings.catch_warnings(record=True) as told:
    import serde.compat.tvm
from tvm import relay
assert "has a Relay of its own" in str(told[-1].message)
print(relay.whose)
"""


def run(site: Path, script: str, hide: str = HIDE) -> str:
    done = subprocess.run(
        [sys.executable, "-c", hide.format(site=str(site)) + script],
        env=environment(site, ROOT),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def write(site: Path, **modules: str) -> None:
    for name, text in modules.items():
        path = site.joinpath(*name.split("_"), "__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_a_script_runs_without_tvm(tmp_path: Path) -> None:
    assert run(tmp_path, WITHOUT) == "as TVM"


def test_a_newer_tvm_gets_what_it_lacks(tmp_path: Path) -> None:
    write(tmp_path, tvm='IRModule = "theirs"', tvm_ir='Op = "theirs"', tvm_relax_frontend="")
    write(tmp_path, tvm_relax='expr = "theirs"')
    assert run(tmp_path, NEWER) == "beside TVM"


def test_a_tvm_with_relay_stays_as_it_is(tmp_path: Path) -> None:
    write(tmp_path, tvm="", tvm_relay='whose = "theirs"')
    assert run(tmp_path, OLDER) == "theirs"


def test_relax_goes_on_beside_relay(tmp_path: Path) -> None:
    pytest.importorskip("tvm")
    script = """
import serde, serde.compat.tvm
from tvm import relay, relax
import tvm
y = relay.nn.relu(relay.var("x", shape=(2, 3)))
made = serde.export_model((relay.IRModule.from_expr(y), {}), format="relax")
assert isinstance(made, tvm.IRModule) and isinstance(made["main"], relax.Function)
print("both")
"""
    assert run(tmp_path, script, hide="") == "both"
