"""ResourceQuotas: what an object uses of a namespace's limits, and which writes they let pass."""
