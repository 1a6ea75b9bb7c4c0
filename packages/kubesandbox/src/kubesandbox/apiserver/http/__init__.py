"""HTTP as values: requests, responses, paths, options, bodies and content negotiation, without a web framework."""
