"""TVM's pattern language of Relay: match, rewrite and partition what has a given form.

Each pattern is an object; those written with operators, as ``wildcard() + is_constant()``, are
patterns of calls. What is asked for is loaded then.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.tvm.dataflow_pattern.language": (
            "dominates has_attr has_dtype has_shape has_type is_constant is_expr is_if is_let "
            "is_op is_tuple is_tuple_get_item is_var wildcard"
        ),
        "serde.relay.tvm.dataflow_pattern.matching": "match",
        "serde.relay.tvm.dataflow_pattern.patterns": (
            "AltPattern AndPattern AttrPattern CallPattern ConstantPattern DFPattern "
            "DataTypePattern DominatorPattern ExprPattern FunctionPattern IfPattern LetPattern "
            "ShapePattern TupleGetItemPattern TuplePattern TypePattern VarPattern WildcardPattern"
        ),
        "serde.relay.tvm.dataflow_pattern.rewriting": "DFPatternCallback partition rewrite",
    },
)
