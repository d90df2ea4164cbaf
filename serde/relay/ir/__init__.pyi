"""Relay's data model: types, expressions, modules, and what reads them.

What most modules elsewhere need of it they import from here; each name is loaded when it is used.
"""

from serde.relay.ir.adt import (
    Clause as Clause,
    Constructor as Constructor,
    Match as Match,
    Pattern as Pattern,
    PatternConstructor as PatternConstructor,
    PatternTuple as PatternTuple,
    PatternVar as PatternVar,
    TypeData as TypeData,
)
from serde.relay.ir.attrs import registration as registration
from serde.relay.ir.bodies import (
    Apply as Apply,
    Blank as Blank,
    all_nodes as all_nodes,
    carried as carried,
    instantiate as instantiate,
    map_bodies as map_bodies,
)
from serde.relay.ir.dims import (
    Any as Any,
    Dim as Dim,
    DimLike as DimLike,
    FloorDiv as FloorDiv,
    SymDim as SymDim,
    as_dim as as_dim,
    product as product,
    same_length as same_length,
    same_shape as same_shape,
    substitute as substitute,
    symbol as symbol,
)
from serde.relay.ir.expr import (
    Attrs as Attrs,
    Call as Call,
    Constant as Constant,
    Expr as Expr,
    Function as Function,
    GlobalVar as GlobalVar,
    If as If,
    Let as Let,
    Op as Op,
    Span as Span,
    Tuple as Tuple,
    TupleGetItem as TupleGetItem,
    TupleWrapper as TupleWrapper,
    Var as Var,
    astuple as astuple,
    const as const,
    is_absent as is_absent,
    tensor_type as tensor_type,
)
from serde.relay.ir.foreign import (
    ARGUMENTS as ARGUMENTS,
    Empty as Empty,
    Foreign as Foreign,
    Input as Input,
)
from serde.relay.ir.infer import (
    infer_function as infer_function,
    infer_if as infer_if,
    infer_module as infer_module,
)
from serde.relay.ir.leaves import (
    holds_values as holds_values,
    leaf_names as leaf_names,
    leaf_types as leaf_types,
    output_names as output_names,
    value_types as value_types,
)
from serde.relay.ir.model import ModelMeta as ModelMeta, RelayModel as RelayModel
from serde.relay.ir.module import IRModule as IRModule, find_callees as find_callees
from serde.relay.ir.precision import (
    as_dtype as as_dtype,
    limits as limits,
    lowest as lowest,
    number_like as number_like,
    widen as widen,
)
from serde.relay.ir.refs import RefCreate as RefCreate, RefRead as RefRead, RefWrite as RefWrite
from serde.relay.ir.registry import (
    Arguments as Arguments,
    Array as Array,
    OpDef as OpDef,
    Sample as Sample,
    Traits as Traits,
    all_ops as all_ops,
    builder as builder,
    call as call,
    called_name as called_name,
    get as get,
    has_trait as has_trait,
    infer_call as infer_call,
    is_call as is_call,
    pattern_of as pattern_of,
    relay_op as relay_op,
    sample as sample,
    set_type as set_type,
    tensor as tensor,
    trait_of as trait_of,
)
from serde.relay.ir.shapes import (
    broadcast as broadcast,
    conv_dim as conv_dim,
    is_float as is_float,
    join_dim as join_dim,
    layout_axes as layout_axes,
    normalize_axes as normalize_axes,
    normalize_axis as normalize_axis,
    pool_dim as pool_dim,
    reduced_axes as reduced_axes,
    require_float as require_float,
    require_same_dtype as require_same_dtype,
    require_window as require_window,
    split_padding as split_padding,
)
from serde.relay.ir.traits import (
    Arithmetic as Arithmetic,
    BitLevel as BitLevel,
    Cases as Cases,
    Decompresses as Decompresses,
    Discontinuous as Discontinuous,
    Elementwise as Elementwise,
    Float32 as Float32,
    Fractions as Fractions,
    Fusion as Fusion,
    FusionPattern as FusionPattern,
    InRange as InRange,
    Layout as Layout,
    Linear as Linear,
    Moves as Moves,
    Ordering as Ordering,
    Quantized as Quantized,
    Reduction as Reduction,
    Regions as Regions,
    Rescales as Rescales,
    Reshape as Reshape,
    SameAxes as SameAxes,
    SameType as SameType,
    Selects as Selects,
    Truth as Truth,
    TypeOnly as TypeOnly,
    UsuallyInRange as UsuallyInRange,
    Values as Values,
    Work as Work,
)
from serde.relay.ir.types import (
    FuncType as FuncType,
    GlobalTypeVar as GlobalTypeVar,
    IncompleteType as IncompleteType,
    RefType as RefType,
    SequenceType as SequenceType,
    TensorType as TensorType,
    TupleType as TupleType,
    Type as Type,
    TypeCall as TypeCall,
    TypeVar as TypeVar,
    accepts as accepts,
    join_types as join_types,
    walk_type as walk_type,
)
from serde.relay.ir.unique_names import UniqueNames as UniqueNames
from serde.relay.ir.visit import (
    children as children,
    free_vars as free_vars,
    has_kind as has_kind,
    post_order as post_order,
    rebuild as rebuild,
    rewrite as rewrite,
    rewrite_function as rewrite_function,
    use_counts as use_counts,
)
