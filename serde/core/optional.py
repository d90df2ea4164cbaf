"""Where optional frameworks come in: imported at first use, or a clear refusal.

The last release of MXNet, 1.9.1, asks at import for names that NumPy has since
removed, and for ``distutils``. `require` answers those names while MXNet is
being imported and gives MXNet's own modules a namespace that still has them;
NumPy itself is left as it was found.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from serde.errors import MissingDependency

__all__ = ["is_installed", "require", "require_installed"]

EXTRAS: Final[dict[str, str]] = {
    "PIL": "check",
    "ai_edge_litert": "tflite",
    "fsspec": "stores",
    "gguf": "gguf",
    "mxnet": "mxnet",
    "onnx_ir": "quantize",
    "openvino": "openvino",
    "onnxruntime": "check",
    "coremltools": "coreml",
    "nnef": "nnef",
    "safetensors": "torch",
    "sklearn": "quantize",
    "diffusers": "diffusers",
    "torch": "torch",
    "transformers": "transformers",
    "tvm": "tvm",
    "pyarrow": "batch",
    "distributed": "dask",
}
"""The extra of this distribution that installs each optional package."""

_MXNET_REASON: Final = (
    "from Python 3.13 on, or with NumPy 2: "
    "pip install --no-deps mxnet==1.9.1, then pip install requests setuptools"
)

_OLDEST_TORCH: Final = (2, 6)

_SYSTEM_PACKAGES: Final[dict[str, str]] = {
    "libgomp.so.1": "libgomp1",
    "libquadmath.so.0": "libquadmath0",
    "libstdc++.so.6": "libstdc++6",
}
"""Debian's packages of the system libraries that MXNet's wheel links to."""

_IMPORT_LOCK = threading.Lock()


def is_installed(package: str) -> bool:
    """Whether a package is there, by its files: importing it is left to who runs it."""
    try:
        found = importlib.util.find_spec(package)
        return found is not None and found.name == package  # Another module may stand in for it.
    except ValueError:  # A module without a specification was put in its place.
        return package in sys.modules


def require_installed(package: str) -> None:
    """Say how to install a package that is not there, without importing one that is.

    Raises:
        MissingDependency: It is not installed.
    """
    if not is_installed(package):
        raise _missing(package, package)


def require(name: str) -> Any:
    """Imports an optional package, or says how to install it.

    Args:
        name: A package or a module in one, such as ``"onnxruntime"``.

    Returns:
        The module of that name.

    Raises:
        MissingDependency: The package, or a library that it cannot do without,
            is not installed, or it is a release before those that are taken. Any other
            failure of its import is left as it is.
    """
    package = name.partition(".")[0]
    if package in sys.modules:
        require_installed(package)
    try:
        if package == "mxnet":
            _import_mxnet()
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == "serde":
            raise
        raise _missing(package, missing) from error
    except OSError as error:
        reason = _library_reason(str(error))
        if reason is None:
            raise
        raise MissingDependency(package, extra=EXTRAS.get(package, "all"), reason=reason) from error
    if package == "torch":
        _check_torch(str(getattr(sys.modules[package], "__version__", "")))
    return module


def _check_torch(version: str) -> None:
    """Raise MissingDependency for a release of PyTorch that lacks what is asked of it."""
    found = re.match(r"(\d+)\.(\d+)", version)
    if found and tuple(map(int, found.groups())) < _OLDEST_TORCH:
        wanted = f"PyTorch {'.'.join(map(str, _OLDEST_TORCH))} or newer"
        raise MissingDependency(wanted, extra="torch", reason=f"found PyTorch {version}")


def _missing(package: str, module: str) -> MissingDependency:
    """The error for `package` when the import of `module` failed."""
    reason = _MXNET_REASON if package == "mxnet" else ""
    if module != package:
        supplier = "setuptools" if module == "distutils" else module
        cause = f"{package} is there, but it needs {supplier}: pip install {supplier}"
        return MissingDependency(supplier, extra=EXTRAS.get(package, "all"), reason=cause)
    return MissingDependency(package, extra=EXTRAS.get(package, "all"), reason=reason)


def _library_reason(message: str) -> str | None:
    """What to install when the dynamic loader reports a library as missing."""
    found = re.search(r"(\S+\.so[.\d]*): cannot open shared object file", message)
    if found is None:
        return None
    library = found.group(1)
    package = _SYSTEM_PACKAGES.get(library)
    how = f"; on Debian and Ubuntu: apt-get install {package}" if package else ""
    return f"the system library {library} is missing{how}"


def _import_mxnet() -> None:
    """Imports MXNet with the names it misses; at most once in a process."""
    if "mxnet" in sys.modules:
        return
    with _IMPORT_LOCK:
        if "mxnet" in sys.modules:
            return
        with warnings.catch_warnings(), _removed_names_answered():
            warnings.simplefilter("ignore")
            importlib.import_module("mxnet")
        _bind_namespace(np, _numpy_with_removed_names())
        sparse = sys.modules.get("scipy.sparse")
        if sparse is not None:
            _bind_namespace(sparse, _scipy_sparse_with_csr(sparse))


@contextmanager
def _removed_names_answered() -> Iterator[None]:
    """Lets the module ``numpy`` answer names it has dropped, inside the block only.

    Attribute access that fails goes to the module's own ``__getattr__``; that one
    function is replaced and put back, so no name is ever added to ``numpy``.
    """
    original: Callable[[str], Any] = vars(np)["__getattr__"]

    def answer(name: str) -> Any:
        if name in _REMOVED_NAMES:
            return _REMOVED_NAMES[name]
        return original(name)

    vars(np)["__getattr__"] = answer
    try:
        yield
    finally:
        vars(np)["__getattr__"] = original


def _numpy_with_removed_names() -> types.ModuleType:
    """A copy of NumPy's namespace that also holds the names it has dropped."""
    namespace = types.ModuleType(np.__name__, np.__doc__)
    vars(namespace).update(_REMOVED_NAMES)
    vars(namespace).update(vars(np))
    return namespace


def _scipy_sparse_with_csr(sparse: types.ModuleType) -> types.ModuleType:
    """A copy of ``scipy.sparse`` that also is its own submodule ``csr``.

    MXNet asks for ``scipy.sparse.csr.csr_matrix`` whenever an array is made; SciPy has
    deprecated that submodule, and what was in it is in ``scipy.sparse``.
    """
    namespace = types.ModuleType(sparse.__name__, sparse.__doc__)
    vars(namespace).update(vars(sparse))
    vars(namespace)["csr"] = namespace
    return namespace


def _bind_namespace(original: types.ModuleType, namespace: types.ModuleType) -> None:
    """Gives `namespace` to MXNet's modules wherever they refer to `original`.

    MXNet looks some removed names up only when it runs (``np.bool`` when an array
    is indexed by a mask), after the import is over.
    """
    for name, module in list(sys.modules.items()):
        if name != "mxnet" and not name.startswith("mxnet."):
            continue
        for variable, value in list(vars(module).items()):
            if value is original:
                setattr(module, variable, namespace)


def _msort(a: Any) -> Any:
    """A copy of `a`, sorted along its first axis."""
    return np.sort(a, axis=0)


def _in1d(ar1: Any, ar2: Any, assume_unique: bool = False, invert: bool = False) -> Any:
    """Whether each element of the flattened `ar1` is in `ar2`."""
    return np.isin(np.ravel(ar1), ar2, assume_unique=assume_unique, invert=invert)


def _trapz(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Any:
    """The integral of `y` along `axis` by the trapezoidal rule."""
    values = np.moveaxis(np.asarray(y), axis, -1)
    steps: Any = dx
    if x is not None:
        places = np.asarray(x)
        steps = np.diff(places if places.ndim == 1 else np.moveaxis(places, axis, -1), axis=-1)
    return (steps * (values[..., 1:] + values[..., :-1]) / 2.0).sum(axis=-1)


def _finance(name: str) -> Callable[..., Any]:
    """A stand-in for one of the financial functions, which NumPy gave away."""

    def removed(*_args: Any, **_kwargs: Any) -> Any:
        raise RuntimeError(f"numpy.{name} was removed from NumPy 1.20; see numpy_financial")

    removed.__name__ = name
    return removed


_REMOVED_NAMES: Final[dict[str, Any]] = {
    "bool": np.bool_,
    "int": int,
    "PZERO": 0.0,
    "NZERO": -0.0,
    "PINF": np.inf,
    "NINF": -np.inf,
    "Inf": np.inf,
    "NAN": np.nan,
    "NaN": np.nan,
    "alltrue": np.all,
    "sometrue": np.any,
    "product": np.prod,
    "round_": np.round,
    "msort": _msort,
    "in1d": _in1d,
    "trapz": _trapz,
    **{name: _finance(name) for name in ("mirr", "npv", "pmt", "ppmt", "pv", "rate")},
}
"""What MXNet 1.9.1 asks NumPy for and no longer finds there, and what it meant."""
