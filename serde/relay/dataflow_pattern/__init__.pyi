"""TVM's pattern language of Relay: match, rewrite and partition what has a given form.

Each pattern is an object; those written with operators, as ``wildcard() + is_constant()``, are
patterns of calls. What is asked for is loaded then.
"""

from serde.relay.dataflow_pattern.language import dominates as dominates
from serde.relay.dataflow_pattern.language import has_attr as has_attr
from serde.relay.dataflow_pattern.language import has_dtype as has_dtype
from serde.relay.dataflow_pattern.language import has_shape as has_shape
from serde.relay.dataflow_pattern.language import has_type as has_type
from serde.relay.dataflow_pattern.language import is_constant as is_constant
from serde.relay.dataflow_pattern.language import is_expr as is_expr
from serde.relay.dataflow_pattern.language import is_if as is_if
from serde.relay.dataflow_pattern.language import is_let as is_let
from serde.relay.dataflow_pattern.language import is_op as is_op
from serde.relay.dataflow_pattern.language import is_tuple as is_tuple
from serde.relay.dataflow_pattern.language import is_tuple_get_item as is_tuple_get_item
from serde.relay.dataflow_pattern.language import is_var as is_var
from serde.relay.dataflow_pattern.language import wildcard as wildcard
from serde.relay.dataflow_pattern.matching import match as match
from serde.relay.dataflow_pattern.patterns import AltPattern as AltPattern
from serde.relay.dataflow_pattern.patterns import AndPattern as AndPattern
from serde.relay.dataflow_pattern.patterns import AttrPattern as AttrPattern
from serde.relay.dataflow_pattern.patterns import CallPattern as CallPattern
from serde.relay.dataflow_pattern.patterns import ConstantPattern as ConstantPattern
from serde.relay.dataflow_pattern.patterns import DataTypePattern as DataTypePattern
from serde.relay.dataflow_pattern.patterns import DFPattern as DFPattern
from serde.relay.dataflow_pattern.patterns import DominatorPattern as DominatorPattern
from serde.relay.dataflow_pattern.patterns import ExprPattern as ExprPattern
from serde.relay.dataflow_pattern.patterns import FunctionPattern as FunctionPattern
from serde.relay.dataflow_pattern.patterns import IfPattern as IfPattern
from serde.relay.dataflow_pattern.patterns import LetPattern as LetPattern
from serde.relay.dataflow_pattern.patterns import ShapePattern as ShapePattern
from serde.relay.dataflow_pattern.patterns import TupleGetItemPattern as TupleGetItemPattern
from serde.relay.dataflow_pattern.patterns import TuplePattern as TuplePattern
from serde.relay.dataflow_pattern.patterns import TypePattern as TypePattern
from serde.relay.dataflow_pattern.patterns import VarPattern as VarPattern
from serde.relay.dataflow_pattern.patterns import WildcardPattern as WildcardPattern
from serde.relay.dataflow_pattern.rewriting import DFPatternCallback as DFPatternCallback
from serde.relay.dataflow_pattern.rewriting import partition as partition
from serde.relay.dataflow_pattern.rewriting import rewrite as rewrite
