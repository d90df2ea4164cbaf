"""Operators of MXNet 1.9.1 without an importer, and names of its peers' lists, each with a reason.

Strict both ways: what is imported must not be here, and what is not imported must be.
"""

from __future__ import annotations

_RUNTIME = "of the imperative runtime: no graph of a net has it"
_USER_CODE = "runs Python of its user, which no file has"
_DECODES = (
    "decodes a picture where called at once; MXNet's executor has no kernel of it in a graph, and "
    "ONNX Runtime 1.32 none of ImageDecoder (NOT_IMPLEMENTED)"
)
_READS = (
    "opens a file by its name where called at once; MXNet's executor infers no type of it in a "
    "graph, and no operator of ONNX opens a file"
)
_GRAPHS = "walks a graph kept as a sparse matrix, of which the result has no fixed size"
_STORED = "tells a stored zero from none, which a dense tensor does not"
_CALIBRATION = "chooses a range from a histogram while a net is quantised: no graph of a net has it"
_UNRUNNABLE = "no graph can name its inputs, and oneDNN in MXNet's wheel has no kernel for it"
_STORAGE = "tells whether two arrays lie in the same memory, which is no value of theirs"
_STOPS = "stops the run with a message where its input is false; no operator of ONNX stops"

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
    "_cvimdecode": _DECODES,
    "_cvimread": _READS,
    "_imdecode": _DECODES,
    "_contrib_dgl_adjacency": _GRAPHS,
    "_contrib_dgl_csr_neighbor_non_uniform_sample": _GRAPHS,
    "_contrib_dgl_csr_neighbor_uniform_sample": _GRAPHS,
    "_contrib_dgl_graph_compact": _GRAPHS,
    "_contrib_dgl_subgraph": _GRAPHS,
    "_contrib_edge_id": _STORED,
    "_contrib_getnnz": _STORED,
    "_contrib_calibrate_entropy": _CALIBRATION,
    "_contrib_quantized_rnn": _UNRUNNABLE,
    "_npi_share_memory": _STORAGE,
    "_npx_constraint_check": _STOPS,
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
