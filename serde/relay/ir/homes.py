"""Where the core names of Relay's data model are, which other packages import from here."""

from __future__ import annotations

from typing import Final

__all__ = ["HOMES"]

HOMES: Final = {
    "adt": "Clause Constructor Match Pattern PatternConstructor PatternTuple PatternVar TypeData",
    "attrs": "registration",
    "bodies": "Apply Blank all_nodes carried instantiate map_bodies",
    "dims": (
        "Any Dim DimLike FloorDiv SymDim as_dim product same_length same_shape substitute symbol"
    ),
    "expr": (
        "Attrs Call Constant Expr Function GlobalVar If Let Op Span Tuple TupleGetItem "
        "TupleWrapper Var astuple const is_absent tensor_type"
    ),
    "foreign": "ARGUMENTS Empty Foreign Input",
    "infer": "infer_function infer_if infer_module",
    "leaves": "holds_values leaf_names leaf_types output_names value_types",
    "model": "ModelMeta RelayModel",
    "module": "IRModule find_callees",
    "precision": "as_dtype limits lowest number_like widen",
    "refs": "RefCreate RefRead RefWrite",
    "registry": (
        "Arguments Array OpDef Sample Traits all_ops builder call called_name get has_trait "
        "infer_call is_call pattern_of relay_op sample set_type tensor trait_of"
    ),
    "shapes": (
        "broadcast conv_dim is_float join_dim layout_axes normalize_axes normalize_axis pool_dim "
        "reduced_axes require_float require_same_dtype require_window split_padding"
    ),
    "traits": (
        "Arithmetic BitLevel Cases Decompresses Discontinuous Elementwise Float32 Fractions "
        "Fusion FusionPattern InRange Layout Linear Moves Ordering Quantized Reduction Regions "
        "Rescales Reshape SameAxes SameType Selects Truth TypeOnly UsuallyInRange Values Work"
    ),
    "types": (
        "FuncType GlobalTypeVar IncompleteType RefType SequenceType TensorType TupleType Type "
        "TypeCall TypeVar accepts join_types walk_type"
    ),
    "unique_names": "UniqueNames",
    "visit": "children free_vars has_kind post_order rebuild rewrite rewrite_function use_counts",
}
"""Public names by the module of this package that has them."""
