"""The kernel-module preflight: will every out-of-tree kernel module load after the update?"""
