"""A sandbox's processes: started, kept alive and ended."""
