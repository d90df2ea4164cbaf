"""Functions of TIR read as Relay: their statements, index expressions and reductions."""
