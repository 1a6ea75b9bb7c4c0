"""What the texts and pages of all commands are made of."""
