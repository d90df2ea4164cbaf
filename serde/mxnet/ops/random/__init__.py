"""Numbers drawn at random, the densities of their distributions, choices and shuffles."""
