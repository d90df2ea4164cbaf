"""The commands, each in a module of its name, loaded when it is first asked for."""
