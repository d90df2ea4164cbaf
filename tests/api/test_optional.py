"""Optional packages: imported when asked for, and NumPy left as it was found."""

import subprocess
import sys
import types
import warnings
from pathlib import Path

import numpy as np
import pytest

from serde.compat import import_mxnet
from serde.core.optional import require
from serde.errors import MissingDependency

REMOVED_IN_NUMPY_2 = ["PZERO", "NZERO", "PINF", "NINF", "NaN", "Inf", "alltrue", "msort"]

LEAVES_NUMPY_ALONE = """
import sys, types, warnings
import numpy as np

warnings.simplefilter("error")
filters = list(warnings.filters)
lookup = np.__getattr__
before = {k: v for k, v in vars(np).items() if not isinstance(v, types.ModuleType)}
from serde.compat import import_mxnet
mx = import_mxnet()
after = {k: v for k, v in vars(np).items() if not isinstance(v, types.ModuleType)}
assert list(after) == list(before)
assert all(after[k] is before[k] for k in before)
assert np.__getattr__ is lookup
assert warnings.filters == filters
import mxnet
assert mxnet is mx and import_mxnet() is mx
"""


def test_a_missing_package_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "coremltools", None)
    with pytest.raises(MissingDependency, match=r"serde-relay\[coreml\]") as caught:
        require("coremltools")
    assert caught.value.package == "coremltools"
    assert caught.value.extra == "coreml"


def test_a_pytorch_before_those_that_are_taken_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = types.ModuleType("torch")
    monkeypatch.setitem(sys.modules, "torch", torch)
    for version in ("2.6.0+cpu", "2.15.0a0+git1", "10.0"):
        monkeypatch.setattr(torch, "__version__", version, raising=False)
        assert require("torch") is torch
    monkeypatch.setattr(torch, "__version__", "2.5.1+cu121")
    with pytest.raises(MissingDependency, match=r"PyTorch 2\.6 or newer .*found PyTorch 2\.5\.1"):
        require("torch")


@pytest.mark.wide
def test_a_missing_mxnet_says_how_to_install_it_on_python_3_13() -> None:
    code = (
        "import sys; sys.modules['mxnet'] = None\n"
        "from serde.compat import import_mxnet\n"
        "import_mxnet()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "pip install --no-deps mxnet==1.9.1" in run.stderr


def test_a_package_that_the_package_needs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nnef.py").write_text("import no_such_package_of_nnef\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nnef", raising=False)
    with pytest.raises(MissingDependency, match="no_such_package_of_nnef"):
        require("nnef")


def test_a_missing_system_library_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = "libgomp.so.1: cannot open shared object file: No such file or directory"
    (tmp_path / "nnef.py").write_text(f"raise OSError({message!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nnef", raising=False)
    with pytest.raises(MissingDependency, match="apt-get install libgomp1"):
        require("nnef")


def test_other_failures_of_an_import_pass_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "nnef.py").write_text("raise OSError('disk on fire')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "nnef", raising=False)
    with pytest.raises(OSError, match="disk on fire"):
        require("nnef")


@pytest.mark.wide
def test_importing_mxnet_leaves_numpy_and_warnings_alone() -> None:
    subprocess.run([sys.executable, "-c", LEAVES_NUMPY_ALONE], check=True)


def test_the_import_is_undone_when_mxnet_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mxnet.py").write_text("import numpy\nnumpy.PZERO\nraise ValueError('broken')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kept = {k: v for k, v in sys.modules.items() if k == "mxnet" or k.startswith("mxnet.")}
    lookup = np.__getattr__
    try:
        for name in kept:
            del sys.modules[name]
        with pytest.raises(ValueError, match="broken"):
            require("mxnet")
    finally:
        sys.modules.update(kept)
    assert np.__getattr__ is lookup


@pytest.fixture(scope="module")
def mx() -> types.ModuleType:
    return import_mxnet()


@pytest.mark.skipif(np.__version__.startswith("1."), reason="NumPy 1 still has these names")
@pytest.mark.parametrize("name", REMOVED_IN_NUMPY_2)
def test_numpy_does_not_have_the_removed_names(mx: types.ModuleType, name: str) -> None:
    assert not hasattr(np, name)


@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "uint8", "int8", "int32", "int64", "bool"]
)
def test_arrays_are_saved_and_loaded(mx: types.ModuleType, tmp_path: Path, dtype: str) -> None:
    values = np.array([[0, 1, 2], [1, 0, 3]]).astype(dtype)
    path = str(tmp_path / "array.params")
    mx.nd.save(path, {"arg:a": mx.nd.array(values, dtype=dtype)})
    loaded = mx.nd.load(path)["arg:a"].asnumpy()
    assert loaded.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(loaded, values)


def test_a_numpy_style_array_takes_a_mask(mx: types.ModuleType) -> None:
    a = mx.np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(a[a > 2].asnumpy(), [3.0, 4.0])
    np.testing.assert_array_equal(a[[True, False]].asnumpy(), [[1.0, 2.0]])


def test_a_block_is_hybridized_exported_and_read_back(mx: types.ModuleType, tmp_path: Path) -> None:
    net = mx.gluon.nn.HybridSequential()
    net.add(mx.gluon.nn.Conv2D(4, 3), mx.gluon.nn.BatchNorm(), mx.gluon.nn.Dense(2))
    net.initialize(mx.init.Xavier())
    x = mx.nd.random.normal(shape=(2, 3, 8, 8))
    eager = net(x).asnumpy()
    net.hybridize()
    np.testing.assert_allclose(net(x).asnumpy(), eager, rtol=1e-5, atol=1e-6)
    net.export(str(tmp_path / "net"))
    with warnings.catch_warnings():  # SymbolBlock cannot know the type of an input
        warnings.simplefilter("ignore")
        again = mx.gluon.SymbolBlock.imports(
            str(tmp_path / "net-symbol.json"), ["data"], str(tmp_path / "net-0000.params")
        )
    np.testing.assert_allclose(again(x).asnumpy(), eager, rtol=1e-5, atol=1e-6)


def test_mxnets_names_for_what_numpy_removed(mx: types.ModuleType) -> None:
    assert mx.np.bool is np.bool_
    assert np.inf == mx.np.PINF
    assert np.isnan(mx.np.NAN)
    assert np.signbit(mx.np.NZERO)


def test_an_array_is_made_beside_a_scipy_of_today(mx: types.ModuleType) -> None:
    sparse = pytest.importorskip("scipy.sparse")
    matrix = sparse.csr_matrix(np.eye(3, dtype=np.float32))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert mx.nd.array(matrix).stype == "csr"
        assert mx.nd.array(np.eye(3)).stype == "default"
    assert sparse.csr is not sparse
