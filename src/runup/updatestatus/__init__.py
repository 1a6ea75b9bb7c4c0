"""How an update goes, as the API object UpdateStatus and as `upgrade status` prints it."""
