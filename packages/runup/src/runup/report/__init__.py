"""The report of a preflight (`preflight-v1-json`): the data that is stored and sent, its limits and its links."""
