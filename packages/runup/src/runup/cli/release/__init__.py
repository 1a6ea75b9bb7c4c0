"""The command `runup release`: builds, inspects and compares release images."""
