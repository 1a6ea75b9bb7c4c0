"""The wiring of the managing operator."""
