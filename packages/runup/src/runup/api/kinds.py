"""The kinds of OpenShift, OLM and KMM: adds rows for the types of this package to `kubekit.api.scheme`.

Code that reads the whole table imports it from here, so that it has these rows whatever was imported before.
"""

from kubekit.api.scheme import RESOURCES as RESOURCES
from kubekit.api.scheme import Resource
from kubekit.api.scheme import resources_by_type as resources_by_type


def _config(kind: str, plural: str) -> Resource:
    return Resource("config.openshift.io", "v1", kind, plural, namespaced=False)


def _machineconfig(kind: str, plural: str) -> Resource:
    return Resource("machineconfiguration.openshift.io", "v1", kind, plural, namespaced=False)


def _olm(kind: str, plural: str) -> Resource:
    return Resource("operators.coreos.com", "v1alpha1", kind, plural, namespaced=True)


def _operator(kind: str, plural: str) -> Resource:
    return Resource("operator.openshift.io", "v1", kind, plural, namespaced=False)


def _kmm(version: str, kind: str, plural: str) -> Resource:
    # Module is namespaced, the preflight kinds are cluster-scoped.
    return Resource("kmm.sigs.x-k8s.io", version, kind, plural, namespaced=kind == "Module")


RESOURCES.update(
    {
        "runup.api.config_v1.ClusterOperator": _config("ClusterOperator", "clusteroperators"),
        "runup.api.config_v1.ClusterVersion": _config("ClusterVersion", "clusterversions"),
        "runup.api.cluster_settings_v1.FeatureGate": _config("FeatureGate", "featuregates"),
        "runup.api.config_v1.Infrastructure": _config("Infrastructure", "infrastructures"),
        "runup.api.cluster_settings_v1.Network": _config("Network", "networks"),
        "runup.api.machineconfig_v1.MachineConfig": _machineconfig("MachineConfig", "machineconfigs"),
        "runup.api.machineconfig_v1.MachineConfigPool": _machineconfig("MachineConfigPool", "machineconfigpools"),
        "runup.api.operator_v1.Etcd": Resource("operator.openshift.io", "v1", "Etcd", "etcds", namespaced=False),
        "runup.api.apiserver_v1.APIRequestCount": Resource(
            "apiserver.openshift.io", "v1", "APIRequestCount", "apirequestcounts", namespaced=False
        ),
        "runup.api.update_v1alpha1.UpdateStatus": Resource(
            "update.openshift.io", "v1alpha1", "UpdateStatus", "updatestatuses", namespaced=False
        ),
        "runup.api.build_v1.Build": Resource("build.openshift.io", "v1", "Build", "builds", namespaced=True),
        "runup.api.hub_v1.ManagedCluster": Resource(
            "cluster.open-cluster-management.io", "v1", "ManagedCluster", "managedclusters", namespaced=False
        ),
        "runup.api.hub_v1.ManagedClusterSet": Resource(
            "cluster.open-cluster-management.io", "v1beta2", "ManagedClusterSet", "managedclustersets", namespaced=False
        ),
        "runup.api.hub_v1.ManifestWork": Resource(
            "work.open-cluster-management.io", "v1", "ManifestWork", "manifestworks", namespaced=True
        ),
        "runup.api.cluster_settings_v1.ConfigNode": _config("Node", "nodes"),
        "runup.api.cluster_settings_v1.Image": _config("Image", "images"),
        "runup.api.cluster_settings_v1.ImageDigestMirrorSet": _config("ImageDigestMirrorSet", "imagedigestmirrorsets"),
        "runup.api.cluster_settings_v1.Proxy": _config("Proxy", "proxies"),
        "runup.api.machineconfig_v1.KubeletConfig": _machineconfig("KubeletConfig", "kubeletconfigs"),
        "runup.api.operator_v1.CloudCredential": _operator("CloudCredential", "cloudcredentials"),
        "runup.api.machineconfig_v1.MachineOSConfig": _machineconfig("MachineOSConfig", "machineosconfigs"),
        "runup.api.operator_v1.IngressController": Resource(
            "operator.openshift.io", "v1", "IngressController", "ingresscontrollers", namespaced=True
        ),
        "runup.api.operator_v1.MachineConfiguration": _operator("MachineConfiguration", "machineconfigurations"),
        "runup.api.operator_v1.OperatorNetwork": _operator("Network", "networks"),
        "runup.api.platform_v1.MachineHealthCheck": Resource(
            "machine.openshift.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks", namespaced=True
        ),
        "runup.api.platform_v1.CephCluster": Resource(
            "ceph.rook.io", "v1", "CephCluster", "cephclusters", namespaced=True
        ),
        "runup.api.operator_v1.Authentication": _operator("Authentication", "authentications"),
        "runup.api.operator_v1.OpenShiftAPIServer": _operator("OpenShiftAPIServer", "openshiftapiservers"),
        "runup.api.operator_v1.OpenShiftControllerManager": _operator(
            "OpenShiftControllerManager", "openshiftcontrollermanagers"
        ),
        "runup.api.operator_v1.KubeAPIServer": _operator("KubeAPIServer", "kubeapiservers"),
        "runup.api.operator_v1.KubeControllerManager": _operator("KubeControllerManager", "kubecontrollermanagers"),
        "runup.api.operator_v1.KubeScheduler": _operator("KubeScheduler", "kubeschedulers"),
        "runup.api.operator_v1.EtcdBackup": Resource(
            "operator.openshift.io", "v1alpha1", "EtcdBackup", "etcdbackups", namespaced=False
        ),
        "runup.api.operator_v1.CredentialsRequest": Resource(
            "cloudcredential.openshift.io", "v1", "CredentialsRequest", "credentialsrequests", namespaced=True
        ),
        "runup.api.operator_v1.ImageRegistryConfig": Resource(
            "imageregistry.operator.openshift.io", "v1", "Config", "configs", namespaced=False
        ),
        "runup.api.olm_v1alpha1.Subscription": _olm("Subscription", "subscriptions"),
        "runup.api.olm_v1alpha1.InstallPlan": _olm("InstallPlan", "installplans"),
        "runup.api.olm_v1alpha1.ClusterServiceVersion": _olm("ClusterServiceVersion", "clusterserviceversions"),
        "runup.api.olm_v1alpha1.CatalogSource": _olm("CatalogSource", "catalogsources"),
        "runup.api.olm_v1alpha1.ClusterExtension": Resource(
            "olm.operatorframework.io", "v1", "ClusterExtension", "clusterextensions", namespaced=False
        ),
        "runup.api.platform_v1.PersistentVolume": Resource(
            "", "v1", "PersistentVolume", "persistentvolumes", namespaced=False
        ),
        "runup.api.platform_v1.CSINode": Resource("storage.k8s.io", "v1", "CSINode", "csinodes", namespaced=False),
        "runup.api.platform_v1.VolumeAttachment": Resource(
            "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False
        ),
        "runup.api.platform_v1.StorageVersionMigration": Resource(
            "migration.k8s.io", "v1alpha1", "StorageVersionMigration", "storageversionmigrations", namespaced=False
        ),
        "runup.api.platform_v1.CertificateSigningRequest": Resource(
            "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
        ),
        "runup.api.platform_v1.Service": Resource("", "v1", "Service", "services", namespaced=True),
        "runup.api.platform_v1.Machine": Resource(
            "machine.openshift.io", "v1beta1", "Machine", "machines", namespaced=True
        ),
        "runup.api.platform_v1.MachineSet": Resource(
            "machine.openshift.io", "v1beta1", "MachineSet", "machinesets", namespaced=True
        ),
        "runup.api.platform_v1.CertManagerCertificate": Resource(
            "cert-manager.io", "v1", "Certificate", "certificates", namespaced=True
        ),
        "runup.api.platform_v1.VirtualMachineInstance": Resource(
            "kubevirt.io", "v1", "VirtualMachineInstance", "virtualmachineinstances", namespaced=True
        ),
        "runup.api.platform_v1.PreflightValidation": _kmm("v1beta2", "PreflightValidation", "preflightvalidations"),
        "runup.api.platform_v1.PreflightValidationOCP": _kmm(
            "v1beta2", "PreflightValidationOCP", "preflightvalidationsocp"
        ),
        "runup.api.kmm_v1beta1.Module": _kmm("v1beta1", "Module", "modules"),
        "runup.api.kmm_v1beta1.PreflightValidation": _kmm("v1beta1", "PreflightValidation", "preflightvalidations"),
        "runup.api.kmm_v1beta1.PreflightValidationOCP": _kmm(
            "v1beta1", "PreflightValidationOCP", "preflightvalidationsocp"
        ),
        "runup.api.kmm_v1beta2.PreflightValidation": _kmm("v1beta2", "PreflightValidation", "preflightvalidations"),
        "runup.api.kmm_v1beta2.PreflightValidationOCP": _kmm(
            "v1beta2", "PreflightValidationOCP", "preflightvalidationsocp"
        ),
    }
)
