"""Core ML: ML Programs of iOS15 to iOS26 are read."""
