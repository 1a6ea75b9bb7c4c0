"""How a command begins and ends; everything that is done for a fast start."""
