"""Version of the distribution."""

__version__ = "1.0.0"
