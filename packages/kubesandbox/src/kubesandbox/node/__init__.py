"""The node agent: runs the pods of release images as real processes, and declares all others ready."""
