"""Fleet updates on a hub of Open Cluster Management: decisions about stages, turns, and permits. Pure."""
