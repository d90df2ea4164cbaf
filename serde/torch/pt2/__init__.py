"""Archives of ``torch.export.save`` (``.pt2``), read without PyTorch: nothing in them is run.

Covered are programs of schema 8, as PyTorch 2.6 to 2.14 write them, in all three layouts: weights
in a pickle beside the program (up to 2.7), in a pickle of the archive's (2.8), and as such (2.9 and
newer). Pickles of tensors are read as data; those of sample inputs and of subclasses of tensors are
never opened.
"""
