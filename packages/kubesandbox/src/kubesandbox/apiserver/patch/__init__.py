"""The four patch types: json, merge, strategic and apply. Each takes and returns plain dicts."""
