"""Apache MXNet: symbol JSON of releases 0.8 to 1.9 and parameter lists of every version.

Known deviations: where MXNet 1.9.1 disagrees with its documentation depending
on oneDNN (SoftmaxOutput on more than two axes), the documentation is followed.
"""
