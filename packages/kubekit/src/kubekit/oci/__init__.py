"""OCI images: references, registries, layouts, files in layers, and signatures."""
