"""What expressions hold, whether they have a form and what they cost: ``relay.analysis``."""
