"""The command line: the table of commands, and what all of them share."""
