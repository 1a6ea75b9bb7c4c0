"""The commands `runup install` and `runup uninstall`."""
