"""What the pages to send share: markup, the look, the frame with the cluster's name and the time, small parts."""
