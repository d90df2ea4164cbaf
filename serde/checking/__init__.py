"""Whether a conversion is right: engines run two models on the same inputs, a verdict judges."""
