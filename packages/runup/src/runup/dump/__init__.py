"""Dumps of real clusters (must-gather, `oc adm inspect`, folders of YAML): objects, and what they prove complete."""
