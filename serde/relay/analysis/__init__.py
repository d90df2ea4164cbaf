"""TVM's analyses of Relay: what an expression holds, whether it has a form, what it costs.

The names and what they mean are those of ``tvm.relay.analysis``. What is asked for is loaded then.
"""

from __future__ import annotations

from serde.core.lazy import lazy_names, refuse_names
from serde.relay.homes import GENERATES

_GONE = ["Feature check_basic_block_normal_form detect_feature extract_fused_functions"]

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "serde.relay.tvm.analysis.calibration": "get_calibration_data",
        "serde.relay.tvm.analysis.call_graph": "CallGraph",
        "serde.relay.tvm.analysis.counting": (
            "count_layers get_total_mac_number list_fake_quantized_op_freqs list_op_freqs"
        ),
        "serde.relay.tvm.analysis.extraction": "extract_intermdeiate_expr search_fc_transpose",
        "serde.relay.tvm.analysis.forms": "well_formed",
        "serde.relay.tvm.analysis.variables": (
            "all_dtypes all_type_vars all_vars bound_type_vars bound_vars free_type_vars "
            "free_vars post_order_visit"
        ),
        "serde.relay.ir.exhaustion": "unmatched_cases",
        "serde.relay.ir.kinds": "check_kind",
        "serde.relay.ir.visit": "check_constant",
        "serde.relay.tvm.passes.annotated_regions": "AnnotatedRegion AnnotatedRegionSet",
    },
    refuse_names("relay.analysis", dict.fromkeys(_GONE, GENERATES)),
)
