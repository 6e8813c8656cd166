"""Measures the operators on a device: against a copy of the same bytes, against NumPy, and against earlier results."""
