"""Speed and memory. `make bench` prints one JSON document; each module's `run()` gives its part.

Machines are shared and noisy: every figure is a minimum, median and maximum over several runs, and what is to be
compared is measured in turns within one run.
"""
