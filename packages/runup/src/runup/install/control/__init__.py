"""Applies the objects of a component in order, keeps their inventory, waits until they are healthy, removes them."""
