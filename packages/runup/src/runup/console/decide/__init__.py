"""What the console shows and whom it answers, decided from values. Pure."""
