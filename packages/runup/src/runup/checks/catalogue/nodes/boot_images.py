"""New nodes would start from a boot image that is too old for the release.

Applies when a MachineSet names a boot image of RHEL 8 (a release before 4.13), according to the names and versions of
images on Google Cloud, Azure, vSphere, Nutanix and OpenStack (an AMI's ID shows no version), and the machine-config
operator does not keep that MachineSet's image up to date (MachineConfiguration `cluster`, managedBootImagesStatus); or
when the same object's bootImageSkewEnforcementStatus has a version below 4.13 or RHEL 9.2, which is what makes the
machine-config operator refuse minor updates from 4.21 on. All such images are one risk.

Why it matters: boot images are not updated automatically with the cluster. A node that starts from an old image must
update to the release's operating system at its first start, which may fail from RHEL 8. A machine that is replaced or
added during the update then does not become a node.

Remedy: let the machine-config operator manage the boot images (`oc edit machineconfiguration cluster`,
spec.managedBootImages), or put an image of today's release into the MachineSet; in mode Manual write its version down.

Accepting it is right where no node is added or replaced until the images are new.

Source of the rule: the OpenShift documentation of machine configuration, Boot image management and Boot image skew
enforcement; openshift/machine-config-operator, `pkg/operator/status.go` (checkBootImageSkew: 4.13.0, RHEL 9.2).
"""

from __future__ import annotations

import re

from kubekit.lang.text import count
from kubekit.lang.version import Version, VersionError
from runup.api.operator_v1 import BootImageVersion, MachineConfiguration
from runup.api.platform_v1 import MachineSet
from runup.checks.decide.wording import names
from runup.checks.writing import DEFINITIONS, MINOR, Context, Findings, Snapshot, declared, full_name, resource_of, risk

NAME = "BootImagesOld"
# The first release whose nodes are of RHEL 9, and the RHEL of its images.
OLDEST_RELEASE, OLDEST_RHEL = (4, 13), (9, 2)
EXAMPLE = """
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: shop-worker-a, namespace: openshift-machine-api}
spec:
  template:
    spec:
      providerSpec:
        value:
          kind: GCPMachineProviderSpec
          disks: [{boot: true, image: projects/rhcos-cloud/global/images/rhcos-412-86-202212081411-0-gcp-x86-64}]
"""
# `rhcos-412-86-202212081411-0`, `rhcos-412.86.202212081411-0`, and `412.86.20221208` of Azure's gallery.
_IMAGE = re.compile(r"(?:^|[/_-])rhcos[-_]?(\d)(\d{1,2})[-.](\d{2,3})[-.]\d{8,12}")
_VERSION = re.compile(r"^(\d)(\d{1,2})\.(\d{2,3})\.\d{8,12}")


def run(snapshot: Snapshot, _context: Context) -> Findings:
    """Yields one risk that names boot images older than the oldest supported one."""
    settings = snapshot.all_or_none(MachineConfiguration)
    # Without all settings it is not known whose images the operator keeps.
    sets = snapshot.all_or_none(MachineSet) if snapshot.has_all(resource_of(MachineConfiguration)) else ()
    # The machine-config operator keeps the boot images of these MachineSets up to date.
    managed = [
        manager.selection
        for setting in settings
        for manager in setting.status.managed_boot_images_status.machine_managers
        if manager.resource == "machinesets"
    ]
    old: list[tuple[MachineSet | MachineConfiguration, str]] = []
    for machine_set in sorted(sets, key=full_name):
        image, labels = _outdated_image(machine_set), machine_set.metadata.labels
        partial = [each.partial.machine_resource_selector for each in managed if each.mode == "Partial"]
        is_managed = any(each.mode == "All" for each in managed) or any(
            selector and selector.matches(labels) for selector in partial
        )
        if image and not is_managed:
            old.append((machine_set, f"MachineSet {machine_set.metadata.name} has {image}"))
    old += [
        (setting, f"MachineConfiguration {setting.metadata.name} has {version}")
        for setting in settings
        if (version := _version_beyond_skew(setting))
    ]
    if old:
        yield risk(
            NAME,
            f"{count(len(old), 'boot image')} {'is' if len(old) == 1 else 'are'} older than release 4.13: "
            f"{names([reason for _, reason in old])}.",
            [holder for holder, _ in old],
            fix="Let the machine-config operator manage them (`oc edit machineconfiguration cluster`, "
            "spec.managedBootImages), or name images of today's release.",
        )


def _outdated_image(machine_set: MachineSet) -> str:
    """Returns the boot image that the machines start from if it is too old by its name, else an empty string."""
    # Each cloud has another place for it.
    value = machine_set.spec.template.spec.provider_spec.value
    image, disks, root = value.get("image"), value.get("disks"), value.get("rootVolume")
    image_names = [image.get(key) for key in ("name", "version", "resourceID")] if isinstance(image, dict) else [image]
    disk_images = [disk.get("image") for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    root_image = root.get("sourceUUID") if isinstance(root, dict) else None
    for text in (*disk_images, *image_names, value.get("template"), root_image):
        match = (_IMAGE.search(text) or _VERSION.match(text)) if isinstance(text, str) else None
        if match and (int(match[1]), int(match[2])) < OLDEST_RELEASE:
            return str(text).rpartition("/")[2]
    return ""


def _version_beyond_skew(settings: MachineConfiguration) -> str:
    """Returns the version of a boot image that makes the machine-config operator refuse minor updates, or nothing."""
    enforcement = settings.status.boot_image_skew_enforcement_status
    boot_image_version = {"Automatic": enforcement.automatic, "Manual": enforcement.manual}.get(
        enforcement.mode, BootImageVersion()
    )
    # The release counts where both are given.
    if boot_image_version.ocp_version:
        try:
            version = Version(boot_image_version.ocp_version)
        except VersionError:
            # As the operator does: a text that is no version limits nothing.
            return ""
        return f"ocpVersion {boot_image_version.ocp_version}" if version.minor_version < OLDEST_RELEASE else ""
    # With a date of another length the operator limits nothing.
    match = re.match(r"(\d+)\.(\d+)\.(\d{8}|\d{12})(?!\d)", boot_image_version.rhcos_version)
    if not match:
        return ""
    rhel = (int(match[1]), int(match[2]))
    # Its RHEL is the beginning, as in `9.6.20251023-0`, or the second part of older ones, `412.86.202212081411-0`.
    if len(match[3]) == 12 and len(match[2]) > 1:
        rhel = (int(match[2][0]), int(match[2][1:]))
    return f"rhcosVersion {boot_image_version.rhcos_version}" if rhel < OLDEST_RHEL else ""


CHECK = declared(
    run, NAME, "machine-config", reads=(MachineSet, MachineConfiguration, DEFINITIONS), rank=567, updates=MINOR
)
