"""TFLite (LiteRT) models: schema version 3, builtin operators as of LiteRT 2.3.

Known deviations: custom operators and TensorFlow's (``Flex``) are kept or converted by
functions of users alone; tensors of texts are refused.
"""
