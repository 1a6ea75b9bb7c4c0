"""The building blocks of HTML pages: markup, style, the frame with the cluster's name and the time, small parts."""
