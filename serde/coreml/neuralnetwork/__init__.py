"""NeuralNetworks: the dialect of layers."""
