"""The steps from a source to a target that every conversion takes."""
