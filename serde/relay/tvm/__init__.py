"""What only users of TVM's library call; no conversion does, and nothing below imports it.

Its passes, analyses, language of patterns, and the definitions that programs rely on. Their public
names are where TVM has them, such as ``relay.transform`` and ``relay.analysis``.
"""
