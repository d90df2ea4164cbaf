"""Relay itself: text in TVM's spelling or serde's, TVM's JSON graphs and parameter files.

Known deviations: strict text holds floats with six digits, as TVM's printer
does; where that would change a value, it is refused unless allowed. Types,
devices and registries that a JSON graph carries besides the pivot's nodes are
left out: types are inferred anew.
"""
