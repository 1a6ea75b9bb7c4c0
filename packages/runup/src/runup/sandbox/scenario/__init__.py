"""Scenarios: folders of YAML, and their releases as images; `bundled` holds those that are shipped."""
