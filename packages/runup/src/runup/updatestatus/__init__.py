"""The progress of an update: the API object UpdateStatus and the command `upgrade status`."""
