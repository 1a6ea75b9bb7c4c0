"""What `runup` and `kubesandbox` both stand on: a Kubernetes client, wire types, languages of cluster files, images.

It knows neither of them. `product` is how requests name their sender where nobody says otherwise; the program that is
run sets it.
"""

product = "kubekit"
