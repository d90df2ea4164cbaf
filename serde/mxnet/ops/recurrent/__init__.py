"""Recurrent layers, and MXNet's stack of them."""
