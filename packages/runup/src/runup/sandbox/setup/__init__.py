"""Sets up a scenario's cluster: settings, and the objects that are created first."""
