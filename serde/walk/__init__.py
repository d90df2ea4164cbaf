"""What every bridge shares: tables of converters, contexts, and both walks."""
