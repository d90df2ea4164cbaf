"""Where the public names of ``serde.relay`` are."""

from __future__ import annotations

from typing import Final

__all__ = ["ABOVE_NODES", "COMPILED", "ELSEWHERE", "GENERATES", "HOMES"]

_MODULES: Final = (
    "adt analysis build_module dataflow_pattern expr expr_functor function op prelude testing "
    "transform"
)

HOMES: Final = {
    **{f"serde.relay.{name}": name for name in _MODULES.split()},
    "serde.relay.build_module": "build_module optimize",
    "serde.relay.ir.adt": (
        "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar "
        "PatternWildcard TypeData"
    ),
    "serde.relay.ir.affine_type": "TensorAffineType TupleAffineType",
    "serde.relay.ir.copies": "bind",
    "serde.relay.ir.compare": "assert_structural_equal structural_equal",
    "serde.relay.ir.dims": "Any symbol",
    "serde.relay.ir.expr": (
        "Call Constant Expr Function GlobalVar If Let Op RelayExpr Tuple TupleGetItem "
        "TupleWrapper Var const var"
    ),
    "serde.relay.ir.functor": "ExprFunctor ExprMutator ExprVisitor MixedModeMutator",
    "serde.relay.ir.hashing": "structural_hash",
    "serde.relay.ir.loops": "loops",
    "serde.relay.ir.model": "ModelMeta RelayModel",
    "serde.relay.ir.module": "IRModule",
    "serde.relay.ir.refs": "RefCreate RefRead RefWrite",
    "serde.relay.ir.span": "SequentialSpan SourceName Span",
    "serde.relay.ir.type_functor": "TypeFunctor TypeMutator TypeVisitor",
    "serde.relay.ir.types": (
        "FuncType GlobalTypeVar IncompleteType Kind RefType RelayRefType SequenceType "
        "TensorType "
        "TupleType Type TypeCall TypeConstraint TypeKind TypeRelation TypeVar"
    ),
    "serde.relay.ir.verify": "verify",
    "serde.relay.run.executor": "create_executor",
    "serde.relay.scope_builder": "scope_builder ScopeBuilder",
    "serde.relay.text.parser": "fromtext parse parse_expr",
    "serde.relay.tvm.prelude": "Prelude",
    "serde.relay.ty": "ty scalar_type",
}
"""Names by the module that has them; a module that bears its own name is meant itself."""

ABOVE_NODES: Final = {
    "generic": "serde.relay.ir.generic",
    "highlighting": "serde.relay.text.highlighting",
    "parser": "serde.relay.text.parser",
    "printer": "serde.relay.text.printer",
    "registry": "serde.relay.ir.registry",
    "showing": "serde.relay.ir.showing",
    "standard": "serde.relay.tvm.standard.texts",
    "support_levels": "serde.relay.tvm.support_levels",
}
"""What nodes ask for that is built upon them; see :mod:`serde.relay.ir.hooks`."""

GENERATES: Final = "it serves the code that TVM generates, and no conversion"
COMPILED: Final = (
    "compiling, tuning and running on devices take TVM itself; serde.compile(model) gives a model "
    "to TVM's Relax, and relay.create_executor runs a module in Python"
)
ELSEWHERE: Final = {
    **dict.fromkeys(("build", "build_config", "backend", "collage", "vm"), COMPILED),
    "quantize": "int8=True of a conversion quantises, transform.FakeQuantizationToInteger rewrites",
}
"""What TVM has and this package lacks, and what takes its place."""
