"""Findings of preflights as text, tables and pages."""
