"""PyTorch: programs of ``torch.export`` (``.pt2``), TorchScript and live modules; modules out.

Covered are the operators of PyTorch 2.13, ``.pt2`` archives of schema 8 (PyTorch 2.6 and newer),
and everything that can be written as one module of Python. PyTorch itself, 2.6 or newer, is needed
for live objects and TorchScript only.
"""
