"""What runs models: the contract of an engine, Relay's own, and the process that others run in."""
