"""Wire types of the OpenShift, OLM and KMM APIs: frozen, slim, one module a group-version.

A decoded object holds only the fields that runup reads. It is never written back whole:
writes are applies and patches of what runup owns (`runup.process.plan`).
"""

from runup.api import kinds as kinds
