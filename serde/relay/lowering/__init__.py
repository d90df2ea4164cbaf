"""What operators are made of in other operators, by category; no format is known here."""
