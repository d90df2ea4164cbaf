"""The native model: a module and its parameters, as the files hold them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from serde.core import Weight, dataclass, field
from serde.relay.ir import IRModule, ModelMeta

__all__ = ["RelayProgram"]


@dataclass(frozen=True, slots=True)
class RelayProgram:
    """A Relay module and its parameters.

    Attributes:
        mod: The module, with its types inferred.
        params: Parameters by the name of their variable, in the order of ``main``.
        text: The module's text, where it is about to be written.
        unused: Names of the parameter file that ``main`` has no parameter for.
        source: Where it is from, for messages.
        meta: Facts about the model that the module does not carry itself.
    """

    mod: IRModule
    params: Mapping[str, Weight] = field(default_factory=lambda: MappingProxyType({}))
    text: str = ""
    unused: tuple[str, ...] = ()
    source: str = "<memory>"
    meta: ModelMeta = field(default_factory=ModelMeta)
