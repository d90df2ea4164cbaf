"""Operators of MXNet 1.9.1 without an importer, and names of its peers' lists, each with a reason.

Strict both ways: what is imported must not be here, and what is not imported must be.
"""

from __future__ import annotations

_RUNTIME = "of the imperative runtime: no graph of a net has it"
_USER_CODE = "runs Python of its user, which no file has"
_FILES = "decodes, reads or edits an image of bytes, before a net"
_GRAPHS = "walks a graph kept as a sparse matrix, of which the result has no fixed size"
_CALIBRATION = "chooses a range from a histogram while a net is quantised: no graph of a net has it"
_UNRUNNABLE = "no graph can name its inputs, and oneDNN in MXNet's wheel has no kernel for it"
_OPEN = "no importer yet"

FORWARD_GAPS: dict[str, str] = {
    "_CachedOp": _RUNTIME,
    "_CachedOpThreadSafe": _RUNTIME,
    "_CustomFunction": _RUNTIME,
    "_NDArray": _RUNTIME,
    "_Native": _RUNTIME,
    "_NoGradient": _RUNTIME,
    "_copyto": _RUNTIME,
    "_onehot_encode": _RUNTIME,
    "_set_value": _RUNTIME,
    "Custom": _USER_CODE,
    "_cvcopyMakeBorder": _FILES,
    "_cvimdecode": _FILES,
    "_cvimread": _FILES,
    "_cvimresize": _FILES,
    "_imdecode": _FILES,
    "_contrib_dgl_adjacency": _GRAPHS,
    "_contrib_dgl_csr_neighbor_non_uniform_sample": _GRAPHS,
    "_contrib_dgl_csr_neighbor_uniform_sample": _GRAPHS,
    "_contrib_dgl_graph_compact": _GRAPHS,
    "_contrib_dgl_subgraph": _GRAPHS,
    "_contrib_edge_id": _GRAPHS,
    "CTCLoss": _OPEN,
    "SequenceLast": _OPEN,
    "_contrib_BatchNormWithReLU": _OPEN,
    "_contrib_DeformableConvolution": _OPEN,
    "_contrib_DeformablePSROIPooling": _OPEN,
    "_contrib_ModulatedDeformableConvolution": _OPEN,
    "_contrib_MultiBoxTarget": _OPEN,
    "_contrib_PSROIPooling": _OPEN,
    "_contrib_RROIAlign": _OPEN,
    "_contrib_SparseEmbedding": _OPEN,
    "_contrib_allclose": _OPEN,
    "_contrib_arange_like": _OPEN,
    "_contrib_bipartite_matching": _OPEN,
    "_contrib_box_decode": _OPEN,
    "_contrib_box_encode": _OPEN,
    "_contrib_box_iou": _OPEN,
    "_contrib_calibrate_entropy": _CALIBRATION,
    "_contrib_count_sketch": _OPEN,
    "_contrib_div_sqrt_dim": _OPEN,
    "_contrib_fft": _OPEN,
    "_contrib_getnnz": _OPEN,
    "_contrib_gradientmultiplier": _OPEN,
    "_contrib_hawkesll": _OPEN,
    "_contrib_ifft": _OPEN,
    "_contrib_interleaved_matmul_encdec_qk": _OPEN,
    "_contrib_interleaved_matmul_encdec_valatt": _OPEN,
    "_contrib_interleaved_matmul_selfatt_qk": _OPEN,
    "_contrib_interleaved_matmul_selfatt_valatt": _OPEN,
    "_contrib_quadratic": _OPEN,
    "_contrib_quantized_rnn": _UNRUNNABLE,
    "_contrib_round_ste": _OPEN,
    "_contrib_sign_ste": _OPEN,
    "_image_adjust_lighting": _OPEN,
    "_image_crop": _OPEN,
    "_image_flip_left_right": _OPEN,
    "_image_flip_top_bottom": _OPEN,
    "_image_normalize": _OPEN,
    "_image_random_brightness": _OPEN,
    "_image_random_color_jitter": _OPEN,
    "_image_random_contrast": _OPEN,
    "_image_random_flip_left_right": _OPEN,
    "_image_random_flip_top_bottom": _OPEN,
    "_image_random_hue": _OPEN,
    "_image_random_lighting": _OPEN,
    "_image_random_saturation": _OPEN,
    "_image_resize": _OPEN,
    "_image_to_tensor": _OPEN,
    "_npi_share_memory": _OPEN,
    "_npx_constraint_check": _OPEN,
    "_sparse_retain": _OPEN,
    "cast_storage": _OPEN,
    "col2im": _OPEN,
    "im2col": _OPEN,
}
"""Operator: why it is not imported."""

_NNVM = "NNVM's own spelling, which no MXNet writes"
_TWO = "an operator of MXNet 2.0"
_FORK = "an operator of a fork of MXNet"

PEER_GAPS: dict[str, str] = {
    "null": "no operator: what the file calls a variable",
    "__add_scalar__": _NNVM,
    "__div_scalar__": _NNVM,
    "__mul_scalar__": _NNVM,
    "__pow_scalar__": _NNVM,
    "__rdiv_scalar__": _NNVM,
    "__rpow_scalar__": _NNVM,
    "__rsub_scalar__": _NNVM,
    "__sub_scalar__": _NNVM,
    "_npi_copy": _TWO,
    "_npi_transpose": _TWO,
    "_contrib_quantized_ring_buffer": _FORK,
    "ring_buffer": _FORK,
}
"""Name in a peer's list: why it resolves to nothing of MXNet 1.9.1."""
