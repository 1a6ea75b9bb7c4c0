"""A read-only console in the browser: a fleet, its clusters, their updates and histories."""
