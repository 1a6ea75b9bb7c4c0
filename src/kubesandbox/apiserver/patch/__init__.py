"""The four kinds of patches: json, merge, strategic and apply. Each takes and returns plain dicts."""
