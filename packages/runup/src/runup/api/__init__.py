"""Wire types of the OpenShift, OLM and KMM APIs, frozen and slim, in one module per group and version.

A decoded object holds only the fields that runup reads. It is never written back as a whole: runup applies and patches
only the fields that it owns (`runup.process.plan`).
"""

from runup.api import kinds as kinds
