"""A cluster on this machine, with no cluster at all: scenarios, their set-up, and the processes that run them."""
