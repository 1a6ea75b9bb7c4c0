"""Reads what the gates are evaluated on, and carries out what was decided."""
