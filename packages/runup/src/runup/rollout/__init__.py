"""Update policies: decides when an update may start without a person, and records why it does not."""
