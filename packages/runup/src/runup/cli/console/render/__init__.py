"""The pages of the console as HTML. Pure."""
