"""The command line: the table of commands and their common code."""
