"""Dumps of real clusters (must-gather, `oc adm inspect`, folders of YAML) turned into a scenario."""
