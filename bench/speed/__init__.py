"""Speed and memory of commands, servers, controllers and checks."""
