"""The API's verbs on stored objects: reading, writing, patching, deleting and watching, with admission and defaults."""
