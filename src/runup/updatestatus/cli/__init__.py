"""`runup upgrade status`: an UpdateStatus out of a cluster, a dump or files, and what is shown of it."""
