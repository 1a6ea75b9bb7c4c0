"""The console's web server, the process that judges for it, and who may log in."""
