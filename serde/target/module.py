"""The runtime module of a split model."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any as AnyValue

from serde.errors import OptionError
from serde.io.atomic import write_text
from serde.relay.ir import IRModule
from serde.target.hybrid import HybridExecutor
from serde.target.regions import TYPE_KEY, RegionModule
from serde.target.storage import Stored, host_module, load_split, manifest_of, save_split

__all__ = ["OnnxModule"]


class OnnxModule(Stored):
    """A split model: its regions as ONNX, the rest as Relay, and the order in which they run.

    Made by :func:`serde.target.onnx.build` or :meth:`load`.

    Attributes:
        program: What runs when, and what goes between.
        regions: The regions by the name of their step.
        hosts: The parts of the host as models of their own, by the name of their step.
        others: Global functions that parts of the host call.
        opset: Version of the operator set of the regions.
        type_key: ``"onnx"``, as TVM's runtime modules have one.
    """

    type_key = TYPE_KEY

    @property
    def imported_modules(self) -> tuple[RegionModule, ...]:
        """The regions, in the order in which they run."""
        return tuple(self.regions.values())

    def host(self) -> IRModule:
        """Return the module of the parts of the host, a function each."""
        return host_module(self)

    def get_source(self, fmt: str = "") -> str:
        """Return what the module says as text.

        Args:
            fmt: ``"relay"`` or ``""`` for the parts of the host, ``"json"`` for the manifest.

        Raises:
            OptionError: There is no such format.
        """
        if fmt in ("", "relay"):
            return self.host().astext(show_meta_data=False)
        if fmt == "json":
            return json.dumps(manifest_of(self), indent=1)
        raise OptionError(f"expected format relay or json, found {fmt!r}")

    def get_function(self, name: str) -> Callable[..., AnyValue]:
        """Return a function: ``main`` runs the whole, the name of a region that region.

        Raises:
            OptionError: There is no such function.
        """
        if name in self.regions:
            return self.regions[name].get_function(name)
        if name != "main":
            known = ", ".join(["main", *self.regions])
            raise OptionError(f"no function is called {name} (there are: {known})")
        executor = HybridExecutor(self)

        def call(*args: AnyValue, **named: AnyValue) -> AnyValue:
            results = executor.run(*args, **named)
            return results[0] if len(results) == 1 else tuple(results)

        return call

    __getitem__ = get_function

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write a folder: a manifest, each region as ``.onnx``, the host as Relay.

        It appears whole or not at all, and replaces nothing but another such folder. Where the
        path ends in ``.zip``, a file is written that holds all of this as it is.

        Raises:
            OptionError: The path cannot be written.
        """
        return save_split(self, path)

    def save_to_file(self, path: str | os.PathLike[str], fmt: str = "onnx") -> Path:
        """Write one file: a text of :meth:`get_source`, or the model of the one region.

        Raises:
            OptionError: There is no such format, the path cannot be written, or not all of the
                model is in one region.
        """
        if fmt != "onnx":
            write_text(path, self.get_source(fmt))
        elif self.hosts or len(self.regions) != 1:
            found = f"{len(self.regions)} regions, {len(self.hosts)} parts of the host"
            raise OptionError(f"{os.fspath(path)}: expected one region alone, found {found}")
        else:
            self.imported_modules[0].save(path)
        return Path(path)

    def export_library(self, path: str | os.PathLike[str]) -> Path:
        """Write one file where the name ends in .zip or .onnx, else a folder.

        Nothing is compiled here.

        Raises:
            OptionError: See :meth:`save_to_file` and :meth:`save`; or the name is a library's.
        """
        suffix = Path(path).suffix.lower()
        if suffix in (".a", ".dll", ".dylib", ".o", ".so", ".tar"):
            wanted = "a folder, or a name ending in .zip or .onnx"
            raise OptionError(f"{os.fspath(path)}: expected {wanted}")
        return self.save_to_file(path) if suffix == ".onnx" else self.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnnxModule:
        """Return what :meth:`save` has written.

        Raises:
            FormatError: It is neither folder nor archive, or not sound; a file has another digest.
        """
        found = load_split(path)
        return cls(found.program, found.regions, found.hosts, found.others, found.opset)

    def __repr__(self) -> str:
        return f"OnnxModule({len(self.regions)} regions, {len(self.hosts)} parts of the host)"
