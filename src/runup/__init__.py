"""runup: the release you want to go to checks the cluster you have, before the update."""

import kubekit

__version__ = "0.1.0"

kubekit.product = f"runup/{__version__}"
