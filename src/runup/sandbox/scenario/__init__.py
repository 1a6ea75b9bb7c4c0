"""What a scenario is: a folder of YAML, its releases as images; `bundled` holds those that ship."""
