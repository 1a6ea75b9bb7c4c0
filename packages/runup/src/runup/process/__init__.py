"""The parts that the operator's processes share: leader election, serving, plans and their execution."""
