"""The common base of `runup` and `kubesandbox`: Kubernetes client, wire types, languages of cluster files, OCI images.

It imports neither of them. `product` is the name that requests send as their client by default; the program that is run
sets it.
"""

product = "kubekit"
