"""A model's parameters and its optimizer, as they were read."""
