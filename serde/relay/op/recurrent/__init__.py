"""Layers that carry a state along a sequence: LSTM, GRU and the plain recurrent layer.

Gates stand in the order of ONNX in weights, biases and peepholes, since that is the form
that most layers arrive in and leave in: input, output, forget, cell for an LSTM; update,
reset, hidden for a GRU.
"""
