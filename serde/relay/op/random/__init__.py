"""Random numbers: as functions of a key, and by a seed that each executor reads its own way."""
