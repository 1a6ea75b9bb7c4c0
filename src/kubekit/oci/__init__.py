"""Images: references, registries, layouts, files out of layers, and signatures."""
