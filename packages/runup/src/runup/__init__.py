"""runup: lets the release to update to check the cluster before the update."""

import kubekit
from runup.build_info import VERSION

__version__ = VERSION

kubekit.product = f"runup/{__version__}"
