"""The console's web server, the process that evaluates for it, and who may log in."""
