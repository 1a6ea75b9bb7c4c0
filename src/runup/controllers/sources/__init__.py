"""Small clients of what lies outside the API server. Each works in the background; its state is observed."""
