"""`runup graph`: an update service's graph is made, served and looked into."""
