"""runup: lets the release to update to check the cluster before the update."""

import kubekit

__version__ = "0.1.0"

kubekit.product = f"runup/{__version__}"
