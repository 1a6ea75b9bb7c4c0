"""Input and servers that are hostile or broken: reports, images, signatures, floods, faults, kills."""
