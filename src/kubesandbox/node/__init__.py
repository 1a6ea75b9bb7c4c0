"""The node agent: runs the pods whose image is a release image as real processes, declares the others."""
