"""Renders findings of preflights as text, tables and pages."""
