"""A scenario's cluster made: settings, and the objects that are created first."""
