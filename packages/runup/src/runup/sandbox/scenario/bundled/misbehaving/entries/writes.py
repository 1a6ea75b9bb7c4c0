#!/usr/bin/env python3
"""Tries writes that a preflight must not do; the last output is the server's answer."""

import os
import sys

from kubekit.api.scheme import resource_of
from kubekit.kube import calls, config
from kubekit.kube.api_errors import KubeError
from kubekit.kube.client_sync import SyncClient
from runup.api.config_v1 import ClusterVersion

# Not the client that runup gives to its own checks, which refuses this before it is sent.
with SyncClient(config.load(os.environ.get("KUBECONFIG")), user_agent="misbehaving-release") as client:
    try:
        wanted = {"spec": {"desiredUpdate": {"version": os.environ["PREFLIGHT_TARGET_VERSION"], "force": True}}}
        client.send(calls.merge_patch(resource_of(ClusterVersion), "version", wanted))
    except KubeError as error:
        sys.exit(f"refused: {error}")
sys.exit("nobody refused it")
