"""The kinds of OpenShift, OLM and KMM: adds rows for the types of this package to `kubekit.api.scheme`.

Code that reads the whole table imports it from here, so that it has these rows whatever was imported before.
"""

from kubekit.api.scheme import RESOURCES as RESOURCES
from kubekit.api.scheme import Resource
from kubekit.api.scheme import resources_by_type as resources_by_type


def _config(kind: str, plural: str) -> Resource:
    return Resource(group="config.openshift.io", version="v1", kind=kind, plural=plural, namespaced=False)


def _machineconfig(kind: str, plural: str) -> Resource:
    return Resource(group="machineconfiguration.openshift.io", version="v1", kind=kind, plural=plural, namespaced=False)


def _olm(kind: str, plural: str) -> Resource:
    return Resource(group="operators.coreos.com", version="v1alpha1", kind=kind, plural=plural, namespaced=True)


def _operator(kind: str, plural: str) -> Resource:
    return Resource(group="operator.openshift.io", version="v1", kind=kind, plural=plural, namespaced=False)


def _kmm(version: str, kind: str, plural: str) -> Resource:
    # Module is namespaced, the preflight kinds are cluster-scoped.
    return Resource(group="kmm.sigs.x-k8s.io", version=version, kind=kind, plural=plural, namespaced=kind == "Module")


def _cluster_api(kind: str, plural: str) -> Resource:
    return Resource(group="cluster.x-k8s.io", version="v1beta2", kind=kind, plural=plural, namespaced=True)


def _hypershift(kind: str, plural: str) -> Resource:
    return Resource(group="hypershift.openshift.io", version="v1beta1", kind=kind, plural=plural, namespaced=True)


def _karpenter(kind: str, plural: str) -> Resource:
    return Resource(group="karpenter.sh", version="v1", kind=kind, plural=plural, namespaced=False)


def _update_policy(kind: str, plural: str) -> Resource:
    return Resource(group="update.runup.dev", version="v1alpha1", kind=kind, plural=plural, namespaced=False)


RESOURCES.update(
    {
        "runup.api.update_policy_v1alpha1.UpdateCalendar": _update_policy("UpdateCalendar", "updatecalendars"),
        "runup.api.update_policy_v1alpha1.UpdateRun": _update_policy("UpdateRun", "updateruns"),
        "runup.api.update_policy_v1alpha1.UpdateTurn": _update_policy("UpdateTurn", "updateturns"),
        "runup.api.fleet_update_v1alpha1.FleetUpdate": Resource(
            group="update.runup.dev", version="v1alpha1", kind="FleetUpdate", plural="fleetupdates", namespaced=True
        ),
        "runup.api.update_policy_v1alpha1.UpdateApproval": _update_policy("UpdateApproval", "updateapprovals"),
        "runup.api.update_policy_v1alpha1.UpdatePolicy": _update_policy("UpdatePolicy", "updatepolicies"),
        "runup.api.config_v1.ClusterOperator": _config("ClusterOperator", "clusteroperators"),
        "runup.api.config_v1.ClusterVersion": _config("ClusterVersion", "clusterversions"),
        "runup.api.cluster_settings_v1.FeatureGate": _config("FeatureGate", "featuregates"),
        "runup.api.config_v1.Infrastructure": _config("Infrastructure", "infrastructures"),
        "runup.api.cluster_settings_v1.Network": _config("Network", "networks"),
        "runup.api.machineconfig_v1.MachineConfig": _machineconfig("MachineConfig", "machineconfigs"),
        "runup.api.machineconfig_v1.MachineConfigNode": _machineconfig("MachineConfigNode", "machineconfignodes"),
        "runup.api.machineconfig_v1.MachineConfigPool": _machineconfig("MachineConfigPool", "machineconfigpools"),
        "runup.api.operator_v1.Etcd": Resource(
            group="operator.openshift.io", version="v1", kind="Etcd", plural="etcds", namespaced=False
        ),
        "runup.api.apiserver_v1.APIRequestCount": Resource(
            group="apiserver.openshift.io",
            version="v1",
            kind="APIRequestCount",
            plural="apirequestcounts",
            namespaced=False,
        ),
        "runup.api.update_v1alpha1.UpdateStatus": Resource(
            group="update.openshift.io",
            version="v1alpha1",
            kind="UpdateStatus",
            plural="updatestatuses",
            namespaced=False,
        ),
        "runup.api.build_v1.Build": Resource(
            group="build.openshift.io", version="v1", kind="Build", plural="builds", namespaced=True
        ),
        "runup.api.hub_v1.ManagedCluster": Resource(
            group="cluster.open-cluster-management.io",
            version="v1",
            kind="ManagedCluster",
            plural="managedclusters",
            namespaced=False,
        ),
        "runup.api.hub_v1.ManagedClusterSet": Resource(
            group="cluster.open-cluster-management.io",
            version="v1beta2",
            kind="ManagedClusterSet",
            plural="managedclustersets",
            namespaced=False,
        ),
        "runup.api.hub_v1.ManifestWork": Resource(
            group="work.open-cluster-management.io",
            version="v1",
            kind="ManifestWork",
            plural="manifestworks",
            namespaced=True,
        ),
        "runup.api.cluster_settings_v1.ConfigNode": _config("Node", "nodes"),
        "runup.api.cluster_settings_v1.Image": _config("Image", "images"),
        "runup.api.cluster_settings_v1.ImageDigestMirrorSet": _config("ImageDigestMirrorSet", "imagedigestmirrorsets"),
        "runup.api.cluster_settings_v1.Proxy": _config("Proxy", "proxies"),
        "runup.api.machineconfig_v1.ContainerRuntimeConfig": _machineconfig(
            "ContainerRuntimeConfig", "containerruntimeconfigs"
        ),
        "runup.api.machineconfig_v1.KubeletConfig": _machineconfig("KubeletConfig", "kubeletconfigs"),
        "runup.api.operator_v1.CloudCredential": _operator("CloudCredential", "cloudcredentials"),
        "runup.api.machineconfig_v1.MachineOSConfig": _machineconfig("MachineOSConfig", "machineosconfigs"),
        "runup.api.operator_v1.IngressController": Resource(
            group="operator.openshift.io",
            version="v1",
            kind="IngressController",
            plural="ingresscontrollers",
            namespaced=True,
        ),
        "runup.api.operator_v1.MachineConfiguration": _operator("MachineConfiguration", "machineconfigurations"),
        "runup.api.operator_v1.OperatorNetwork": _operator("Network", "networks"),
        "runup.api.platform_v1.MachineHealthCheck": Resource(
            group="machine.openshift.io",
            version="v1beta1",
            kind="MachineHealthCheck",
            plural="machinehealthchecks",
            namespaced=True,
        ),
        "runup.api.platform_v1.SecurityContextConstraints": Resource(
            group="security.openshift.io",
            version="v1",
            kind="SecurityContextConstraints",
            plural="securitycontextconstraints",
            namespaced=False,
        ),
        "runup.api.cluster_settings_v1.Scheduler": _config("Scheduler", "schedulers"),
        "runup.api.platform_v1.ClusterRoleBinding": Resource(
            group="rbac.authorization.k8s.io",
            version="v1",
            kind="ClusterRoleBinding",
            plural="clusterrolebindings",
            namespaced=False,
        ),
        "runup.api.platform_v1.NodeMaintenance": Resource(
            group="nodemaintenance.medik8s.io",
            version="v1beta1",
            kind="NodeMaintenance",
            plural="nodemaintenances",
            namespaced=False,
        ),
        "runup.api.platform_v1.EC2NodeClass": Resource(
            group="karpenter.k8s.aws", version="v1", kind="EC2NodeClass", plural="ec2nodeclasses", namespaced=False
        ),
        "runup.api.platform_v1.CephCluster": Resource(
            group="ceph.rook.io", version="v1", kind="CephCluster", plural="cephclusters", namespaced=True
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
            group="operator.openshift.io", version="v1alpha1", kind="EtcdBackup", plural="etcdbackups", namespaced=False
        ),
        "runup.api.operator_v1.CredentialsRequest": Resource(
            group="cloudcredential.openshift.io",
            version="v1",
            kind="CredentialsRequest",
            plural="credentialsrequests",
            namespaced=True,
        ),
        "runup.api.operator_v1.ImageRegistryConfig": Resource(
            group="imageregistry.operator.openshift.io", version="v1", kind="Config", plural="configs", namespaced=False
        ),
        "runup.api.olm_v1alpha1.Subscription": _olm("Subscription", "subscriptions"),
        "runup.api.olm_v1alpha1.InstallPlan": _olm("InstallPlan", "installplans"),
        "runup.api.olm_v1alpha1.ClusterServiceVersion": _olm("ClusterServiceVersion", "clusterserviceversions"),
        "runup.api.olm_v1alpha1.CatalogSource": _olm("CatalogSource", "catalogsources"),
        "runup.api.olm_v1alpha1.ClusterExtension": Resource(
            group="olm.operatorframework.io",
            version="v1",
            kind="ClusterExtension",
            plural="clusterextensions",
            namespaced=False,
        ),
        "runup.api.platform_v1.PersistentVolume": Resource(
            group="", version="v1", kind="PersistentVolume", plural="persistentvolumes", namespaced=False
        ),
        "runup.api.platform_v1.CSINode": Resource(
            group="storage.k8s.io", version="v1", kind="CSINode", plural="csinodes", namespaced=False
        ),
        "runup.api.platform_v1.VolumeAttachment": Resource(
            group="storage.k8s.io", version="v1", kind="VolumeAttachment", plural="volumeattachments", namespaced=False
        ),
        "runup.api.platform_v1.StorageVersionMigration": Resource(
            group="migration.k8s.io",
            version="v1alpha1",
            kind="StorageVersionMigration",
            plural="storageversionmigrations",
            namespaced=False,
        ),
        "runup.api.platform_v1.CertificateSigningRequest": Resource(
            group="certificates.k8s.io",
            version="v1",
            kind="CertificateSigningRequest",
            plural="certificatesigningrequests",
            namespaced=False,
        ),
        "runup.api.platform_v1.Service": Resource(
            group="", version="v1", kind="Service", plural="services", namespaced=True
        ),
        "runup.api.platform_v1.Machine": Resource(
            group="machine.openshift.io", version="v1beta1", kind="Machine", plural="machines", namespaced=True
        ),
        "runup.api.platform_v1.MachineSet": Resource(
            group="machine.openshift.io", version="v1beta1", kind="MachineSet", plural="machinesets", namespaced=True
        ),
        "runup.api.platform_v1.CertManagerCertificate": Resource(
            group="cert-manager.io", version="v1", kind="Certificate", plural="certificates", namespaced=True
        ),
        "runup.api.platform_v1.VirtualMachineInstance": Resource(
            group="kubevirt.io",
            version="v1",
            kind="VirtualMachineInstance",
            plural="virtualmachineinstances",
            namespaced=True,
        ),
        "runup.api.platform_v1.KubeVirt": Resource(
            group="kubevirt.io", version="v1", kind="KubeVirt", plural="kubevirts", namespaced=True
        ),
        "runup.api.platform_v1.PreflightValidation": _kmm("v1beta2", "PreflightValidation", "preflightvalidations"),
        "runup.api.platform_v1.PreflightValidationOCP": _kmm(
            "v1beta2", "PreflightValidationOCP", "preflightvalidationsocp"
        ),
        "runup.api.rollouts_v1.ClusterMachine": _cluster_api("Machine", "machines"),
        "runup.api.rollouts_v1.MachineDeployment": _cluster_api("MachineDeployment", "machinedeployments"),
        "runup.api.rollouts_v1.NodeClaim": _karpenter("NodeClaim", "nodeclaims"),
        "runup.api.rollouts_v1.NodePool": _karpenter("NodePool", "nodepools"),
        "runup.api.rollouts_v1.Plan": Resource(
            group="upgrade.cattle.io", version="v1", kind="Plan", plural="plans", namespaced=True
        ),
        "runup.api.hypershift_v1beta1.ControlPlaneComponent": _hypershift(
            "ControlPlaneComponent", "controlplanecomponents"
        ),
        "runup.api.hypershift_v1beta1.HostedCluster": _hypershift("HostedCluster", "hostedclusters"),
        "runup.api.hypershift_v1beta1.HostedNodePool": _hypershift("NodePool", "nodepools"),
        "runup.api.update_v1alpha1.HostedClusterUpdateStatus": Resource(
            group="update.openshift.io",
            version="v1alpha1",
            kind="HostedClusterUpdateStatus",
            plural="hostedclusterupdatestatuses",
            namespaced=True,
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
