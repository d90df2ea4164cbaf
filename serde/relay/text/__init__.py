"""Relay's text: printer and parser of TVM's spelling and of serde's dialect."""
