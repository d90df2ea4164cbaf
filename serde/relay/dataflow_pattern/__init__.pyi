"""TVM's pattern language of Relay: match, rewrite and partition what has a given form.

Each pattern is an object; those written with operators, as ``wildcard() + is_constant()``, are
patterns of calls. What is asked for is loaded then.
"""

from serde.relay.tvm.dataflow_pattern.language import (
    dominates as dominates,
    has_attr as has_attr,
    has_dtype as has_dtype,
    has_shape as has_shape,
    has_type as has_type,
    is_constant as is_constant,
    is_expr as is_expr,
    is_if as is_if,
    is_let as is_let,
    is_op as is_op,
    is_tuple as is_tuple,
    is_tuple_get_item as is_tuple_get_item,
    is_var as is_var,
    wildcard as wildcard,
)
from serde.relay.tvm.dataflow_pattern.matching import match as match
from serde.relay.tvm.dataflow_pattern.patterns import (
    AltPattern as AltPattern,
    AndPattern as AndPattern,
    AttrPattern as AttrPattern,
    CallPattern as CallPattern,
    ConstantPattern as ConstantPattern,
    DataTypePattern as DataTypePattern,
    DFPattern as DFPattern,
    DominatorPattern as DominatorPattern,
    ExprPattern as ExprPattern,
    FunctionPattern as FunctionPattern,
    IfPattern as IfPattern,
    LetPattern as LetPattern,
    ShapePattern as ShapePattern,
    TupleGetItemPattern as TupleGetItemPattern,
    TuplePattern as TuplePattern,
    TypePattern as TypePattern,
    VarPattern as VarPattern,
    WildcardPattern as WildcardPattern,
)
from serde.relay.tvm.dataflow_pattern.rewriting import (
    DFPatternCallback as DFPatternCallback,
    partition as partition,
    rewrite as rewrite,
)
