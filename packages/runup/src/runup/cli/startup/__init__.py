"""The start and end of a command, optimised for a fast start."""
