"""Rules of OpenShift and of distributions of Kubernetes, each written once; those of any Kubernetes are in kubekit."""
