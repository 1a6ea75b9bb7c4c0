"""Will the cluster's kernel modules load on the kernel of another release?"""
