"""Benchmarks: `python -m bench NAME` runs one and prints JSON (`python -m bench --help` lists them).

`speed`, `hostile`, `fuzz`, `mutants` and `real` are the folders; what several of them use is here. Each module's
`run()` gives its part. Machines are shared and noisy: every figure is a minimum, median and maximum over several runs,
and figures that are compared are measured in turns within one run.
"""
