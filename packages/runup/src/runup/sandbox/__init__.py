"""A cluster on this machine, without a real cluster: scenarios, their set-up, and the processes that run them."""
