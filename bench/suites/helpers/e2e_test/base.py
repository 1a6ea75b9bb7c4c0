"""The configuration of the tests: the server that KUBECONFIG names."""

import os
from typing import Any


def get_e2e_configuration() -> Any:
    """Returns a configuration of the server that KUBECONFIG names."""
    from kubernetes import config
    from kubernetes.client.configuration import Configuration

    configuration = Configuration()
    config.load_kube_config(os.environ["KUBECONFIG"], client_configuration=configuration)
    return configuration
