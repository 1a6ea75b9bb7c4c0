"""Objects as the rows of `kubectl get`: columns and cells as kube-apiserver's printers have them."""
