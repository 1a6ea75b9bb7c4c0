"""The built-in types, as one compact table: field names, types, and which lists are keyed by what.

A line of a type: `name` a string, `name:TYPE` anything else, `!` after the name for required, `[]TYPE` a list,
`@k1+k2` its keys (it is a list-map, and a strategic patch merges it by the first), `~` a set. TYPE is one of s, int,
int64, bool, time, quantity, intstr, bytes, any, map (text by text), qmap (quantities), bmap (bytes), or another
type's name. A type whose line ends with `...` is not listed whole: its other fields are kept. Names and keys are
those of Kubernetes 1.34.
"""

from __future__ import annotations

META = "io.k8s.apimachinery.pkg.apis.meta.v1"

# Package -> type -> fields.
TYPES: dict[str, dict[str, str]] = {
    META: {
        "ObjectMeta": (
            "name generateName namespace selfLink uid resourceVersion generation:int64 creationTimestamp:time "
            "deletionTimestamp:time deletionGracePeriodSeconds:int64 labels:map annotations:map "
            "ownerReferences:[]OwnerReference@uid finalizers:[]s~ managedFields:[]ManagedFieldsEntry"
        ),
        "OwnerReference": "apiVersion! kind! name! uid! controller:bool blockOwnerDeletion:bool",
        "ManagedFieldsEntry": "manager operation apiVersion time:time fieldsType fieldsV1:any subresource",
        "LabelSelector": "matchLabels:map matchExpressions:[]LabelSelectorRequirement",
        "LabelSelectorRequirement": "key! operator! values:[]s",
        "Condition": "type! status! observedGeneration:int64 lastTransitionTime!:time reason! message!",
        "ListMeta": "selfLink resourceVersion continue remainingItemCount:int64",
    },
    "io.k8s.api.core.v1": {
        "ConfigMap": "metadata:ObjectMeta immutable:bool data:map binaryData:bmap",
        "Secret": "metadata:ObjectMeta immutable:bool data:bmap stringData:map type",
        "Namespace": "metadata:ObjectMeta spec:NamespaceSpec status:NamespaceStatus",
        "NamespaceSpec": "finalizers:[]s",
        "NamespaceStatus": "phase conditions:[]NamespaceCondition@type",
        "NamespaceCondition": "type! status! lastTransitionTime:time reason message",
        "ServiceAccount": (
            "metadata:ObjectMeta secrets:[]ObjectReference@name imagePullSecrets:[]LocalObjectReference@name "
            "automountServiceAccountToken:bool"
        ),
        "ObjectReference": "kind namespace name uid apiVersion resourceVersion fieldPath",
        "LocalObjectReference": "name",
        "Event": (
            "metadata!:ObjectMeta involvedObject!:ObjectReference reason message source:EventSource "
            "firstTimestamp:time lastTimestamp:time count:int type eventTime:time series:EventSeries action "
            "related:ObjectReference reportingComponent reportingInstance"
        ),
        "EventSource": "component host",
        "EventSeries": "count:int lastObservedTime:time",
        "Service": "metadata:ObjectMeta spec:ServiceSpec status:any",
        "ServiceSpec": (
            "ports:[]ServicePort@port+protocol selector:map clusterIP clusterIPs:[]s type externalIPs:[]s "
            "sessionAffinity loadBalancerIP loadBalancerSourceRanges:[]s externalName externalTrafficPolicy "
            "healthCheckNodePort:int publishNotReadyAddresses:bool sessionAffinityConfig:any ipFamilies:[]s "
            "ipFamilyPolicy allocateLoadBalancerNodePorts:bool loadBalancerClass internalTrafficPolicy "
            "trafficDistribution"
        ),
        "ServicePort": "name protocol=TCP appProtocol port!:int targetPort:intstr nodePort:int",
        "Node": "metadata:ObjectMeta spec:NodeSpec status:NodeStatus",
        "NodeSpec": "podCIDR podCIDRs:[]s~ providerID unschedulable:bool taints:[]Taint configSource:any externalID",
        "Taint": "key! value effect! timeAdded:time",
        "NodeStatus": (
            "capacity:qmap allocatable:qmap phase conditions:[]NodeCondition@type addresses:[]NodeAddress "
            "daemonEndpoints:any nodeInfo:any images:[]any volumesInUse:[]s volumesAttached:[]any config:any "
            "runtimeHandlers:[]any features:any declaredFeatures:[]s"
        ),
        "NodeCondition": "type! status! lastHeartbeatTime:time lastTransitionTime:time reason message",
        "NodeAddress": "type! address!",
        "Pod": "metadata:ObjectMeta spec:PodSpec status:PodStatus",
        "PodTemplateSpec": "metadata:ObjectMeta spec:PodSpec",
        "PodSpec": (
            "volumes:[]Volume@name initContainers:[]Container@name containers!:[]Container@name "
            "ephemeralContainers:[]EphemeralContainer@name restartPolicy terminationGracePeriodSeconds:int64 "
            "activeDeadlineSeconds:int64 dnsPolicy nodeSelector:map serviceAccountName serviceAccount "
            "automountServiceAccountToken:bool nodeName hostNetwork:bool hostPID:bool hostIPC:bool "
            "shareProcessNamespace:bool securityContext:PodSecurityContext "
            "imagePullSecrets:[]LocalObjectReference@name hostname subdomain affinity:any schedulerName "
            "tolerations:[]Toleration hostAliases:[]HostAlias@ip priorityClassName priority:int dnsConfig:any "
            "readinessGates:[]any runtimeClassName enableServiceLinks:bool preemptionPolicy overhead:qmap "
            "topologySpreadConstraints:[]TopologySpreadConstraint@topologyKey+whenUnsatisfiable "
            "setHostnameAsFQDN:bool os:any hostUsers:bool schedulingGates:[]PodSchedulingGate@name "
            "resourceClaims:[]any resources:ResourceRequirements hostnameOverride"
        ),
        "PodSchedulingGate": "name!",
        "HostAlias": "ip! hostnames:[]s",
        "TopologySpreadConstraint": (
            "maxSkew!:int topologyKey! whenUnsatisfiable! labelSelector:LabelSelector minDomains:int "
            "nodeAffinityPolicy nodeTaintsPolicy matchLabelKeys:[]s"
        ),
        "Toleration": "key operator value effect tolerationSeconds:int64",
        "PodSecurityContext": (
            "seLinuxOptions:any windowsOptions:any runAsUser:int64 runAsGroup:int64 runAsNonRoot:bool "
            "supplementalGroups:[]int64 supplementalGroupsPolicy fsGroup:int64 sysctls:[]any fsGroupChangePolicy "
            "seccompProfile:any appArmorProfile:any seLinuxChangePolicy"
        ),
        "SecurityContext": (
            "capabilities:Capabilities privileged:bool seLinuxOptions:any windowsOptions:any runAsUser:int64 "
            "runAsGroup:int64 runAsNonRoot:bool readOnlyRootFilesystem:bool allowPrivilegeEscalation:bool "
            "procMount seccompProfile:any appArmorProfile:any"
        ),
        "Capabilities": "add:[]s drop:[]s",
        "Container": (
            "name! image command:[]s args:[]s workingDir ports:[]ContainerPort@containerPort+protocol "
            "envFrom:[]EnvFromSource env:[]EnvVar@name resources:ResourceRequirements resizePolicy:[]any "
            "restartPolicy restartPolicyRules:[]any volumeMounts:[]VolumeMount@mountPath "
            "volumeDevices:[]VolumeDevice@devicePath livenessProbe:Probe readinessProbe:Probe startupProbe:Probe "
            "lifecycle:any terminationMessagePath terminationMessagePolicy imagePullPolicy "
            "securityContext:SecurityContext stdin:bool stdinOnce:bool tty:bool"
        ),
        "EphemeralContainer": "name! image command:[]s args:[]s targetContainerName ...",
        "ContainerPort": "name hostPort:int containerPort!:int protocol=TCP hostIP",
        "EnvFromSource": "prefix configMapRef:any secretRef:any",
        "EnvVar": "name! value valueFrom:EnvVarSource",
        "EnvVarSource": (
            "fieldRef:ObjectFieldSelector resourceFieldRef:any configMapKeyRef:KeySelector "
            "secretKeyRef:KeySelector fileKeyRef:any"
        ),
        "ObjectFieldSelector": "apiVersion fieldPath!",
        "KeySelector": "name key! optional:bool",
        "ResourceRequirements": "limits:qmap requests:qmap claims:[]any",
        "VolumeMount": "name! readOnly:bool recursiveReadOnly mountPath! subPath mountPropagation subPathExpr",
        "VolumeDevice": "name! devicePath!",
        "Probe": (
            "exec:any httpGet:any tcpSocket:any grpc:any initialDelaySeconds:int timeoutSeconds:int "
            "periodSeconds:int successThreshold:int failureThreshold:int terminationGracePeriodSeconds:int64"
        ),
        "Volume": (
            "name! hostPath:HostPathVolumeSource emptyDir:EmptyDirVolumeSource secret:SecretVolumeSource "
            "configMap:ConfigMapVolumeSource projected:any persistentVolumeClaim:any downwardAPI:any "
            "ephemeral:any csi:any nfs:any image:any iscsi:any fc:any rbd:any cephfs:any glusterfs:any "
            "flexVolume:any cinder:any flocker:any azureFile:any azureDisk:any vsphereVolume:any quobyte:any "
            "photonPersistentDisk:any portworxVolume:any scaleIO:any storageos:any awsElasticBlockStore:any "
            "gcePersistentDisk:any gitRepo:any"
        ),
        "HostPathVolumeSource": "path! type",
        "EmptyDirVolumeSource": "medium sizeLimit:quantity",
        "SecretVolumeSource": "secretName items:[]KeyToPath defaultMode:int optional:bool",
        "ConfigMapVolumeSource": "name items:[]KeyToPath defaultMode:int optional:bool",
        "KeyToPath": "key! path! mode:int",
        "PodStatus": (
            "observedGeneration:int64 phase conditions:[]PodCondition@type message reason nominatedNodeName "
            "hostIP hostIPs:[]any podIP podIPs:[]PodIP@ip startTime:time initContainerStatuses:[]any "
            "containerStatuses:[]any qosClass ephemeralContainerStatuses:[]any resize resourceClaimStatuses:[]any "
            "extendedResourceClaimStatus:any"
        ),
        "PodIP": "ip!",
        "PodCondition": (
            "type! observedGeneration:int64 status! lastProbeTime:time lastTransitionTime:time reason message"
        ),
    },
    "io.k8s.api.apps.v1": {
        "Deployment": "metadata:ObjectMeta spec:DeploymentSpec status:DeploymentStatus",
        "DeploymentSpec": (
            "replicas:int selector!:LabelSelector template!:PodTemplateSpec strategy:DeploymentStrategy "
            "minReadySeconds:int revisionHistoryLimit:int paused:bool progressDeadlineSeconds:int"
        ),
        "DeploymentStrategy": "type rollingUpdate:RollingUpdate",
        "RollingUpdate": "maxUnavailable:intstr maxSurge:intstr",
        "DeploymentStatus": (
            "observedGeneration:int64 replicas:int updatedReplicas:int readyReplicas:int availableReplicas:int "
            "unavailableReplicas:int terminatingReplicas:int conditions:[]WorkloadCondition@type "
            "collisionCount:int"
        ),
        "WorkloadCondition": "type! status! lastUpdateTime:time lastTransitionTime:time reason message",
        "ReplicaSet": "metadata:ObjectMeta spec:ReplicaSetSpec status:ReplicaSetStatus",
        "ReplicaSetSpec": "replicas:int minReadySeconds:int selector!:LabelSelector template:PodTemplateSpec",
        "ReplicaSetStatus": (
            "replicas!:int fullyLabeledReplicas:int readyReplicas:int availableReplicas:int "
            "terminatingReplicas:int observedGeneration:int64 conditions:[]WorkloadCondition@type"
        ),
        "DaemonSet": "metadata:ObjectMeta spec:DaemonSetSpec status:any",
        "DaemonSetSpec": (
            "selector!:LabelSelector template!:PodTemplateSpec updateStrategy:any minReadySeconds:int "
            "revisionHistoryLimit:int"
        ),
        "StatefulSet": "metadata:ObjectMeta spec:StatefulSetSpec status:any",
        "StatefulSetSpec": (
            "replicas:int selector!:LabelSelector template!:PodTemplateSpec volumeClaimTemplates:[]any "
            "serviceName podManagementPolicy updateStrategy:any revisionHistoryLimit:int minReadySeconds:int "
            "persistentVolumeClaimRetentionPolicy:any ordinals:any"
        ),
    },
    "io.k8s.api.batch.v1": {
        "Job": "metadata:ObjectMeta spec:JobSpec status:JobStatus",
        "JobSpec": (
            "parallelism:int completions:int activeDeadlineSeconds:int64 podFailurePolicy:any successPolicy:any "
            "backoffLimit:int backoffLimitPerIndex:int maxFailedIndexes:int selector:LabelSelector "
            "manualSelector:bool template!:PodTemplateSpec ttlSecondsAfterFinished:int completionMode "
            "suspend:bool podReplacementPolicy managedBy"
        ),
        "JobStatus": (
            "conditions:[]JobCondition@type startTime:time completionTime:time active:int succeeded:int "
            "failed:int terminating:int completedIndexes failedIndexes uncountedTerminatedPods:any ready:int"
        ),
        "JobCondition": "type! status! lastProbeTime:time lastTransitionTime:time reason message",
    },
    "io.k8s.api.policy.v1": {
        "PodDisruptionBudget": "metadata:ObjectMeta spec:PodDisruptionBudgetSpec status:PodDisruptionBudgetStatus",
        "PodDisruptionBudgetSpec": (
            "minAvailable:intstr selector:LabelSelector maxUnavailable:intstr unhealthyPodEvictionPolicy"
        ),
        "PodDisruptionBudgetStatus": (
            "observedGeneration:int64 disruptedPods:any disruptionsAllowed!:int currentHealthy!:int "
            "desiredHealthy!:int expectedPods!:int conditions:[]Condition@type"
        ),
    },
    "io.k8s.api.coordination.v1": {
        "Lease": "metadata:ObjectMeta spec:LeaseSpec",
        "LeaseSpec": (
            "holderIdentity leaseDurationSeconds:int acquireTime:time renewTime:time leaseTransitions:int "
            "strategy preferredHolder"
        ),
    },
    "io.k8s.api.rbac.v1": {
        "Role": "metadata:ObjectMeta rules:[]PolicyRule",
        "ClusterRole": "metadata:ObjectMeta rules:[]PolicyRule aggregationRule:any",
        "PolicyRule": "verbs!:[]s apiGroups:[]s resources:[]s resourceNames:[]s nonResourceURLs:[]s",
        "RoleBinding": "metadata:ObjectMeta subjects:[]Subject roleRef!:RoleRef",
        "ClusterRoleBinding": "metadata:ObjectMeta subjects:[]Subject roleRef!:RoleRef",
        "Subject": "kind! apiGroup name! namespace",
        "RoleRef": "apiGroup! kind! name!",
    },
    "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1": {
        "CustomResourceDefinition": "metadata:ObjectMeta spec!:CustomResourceDefinitionSpec status:any",
        "CustomResourceDefinitionSpec": (
            "group! names!:CustomResourceDefinitionNames scope! versions!:[]CustomResourceDefinitionVersion "
            "conversion:any preserveUnknownFields:bool"
        ),
        "CustomResourceDefinitionNames": "plural! singular shortNames:[]s kind! listKind categories:[]s",
        "CustomResourceDefinitionVersion": (
            "name! served!:bool storage!:bool deprecated:bool deprecationWarning schema:any subresources:any "
            "additionalPrinterColumns:[]any selectableFields:[]any"
        ),
    },
}

# Group of an API -> the package of its types.
PACKAGES: dict[str, str] = {
    "": "io.k8s.api.core",
    "apps": "io.k8s.api.apps",
    "batch": "io.k8s.api.batch",
    "policy": "io.k8s.api.policy",
    "coordination.k8s.io": "io.k8s.api.coordination",
    "rbac.authorization.k8s.io": "io.k8s.api.rbac",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
}

# What `kubectl explain` says first.
DESCRIPTIONS: dict[str, str] = {
    "ConfigMap": "ConfigMap holds configuration for pods to read.",
    "Secret": "Secret holds what must not be read by everyone. Values are base64.",
    "Namespace": "Namespace is a scope for names.",
    "ServiceAccount": "ServiceAccount is an identity for the processes of pods.",
    "Event": "Event reports something that happened to an object. It is kept for a short time.",
    "Service": "Service is a stable address for a set of pods.",
    "Node": "Node is a machine of the cluster.",
    "Pod": "Pod is a group of containers that run together on a node.",
    "PodSpec": "What a pod runs, and how.",
    "Container": "One container of a pod.",
    "Deployment": "Deployment keeps a number of pods of one template running, and replaces them when it changes.",
    "ReplicaSet": "ReplicaSet keeps a number of pods of one template running.",
    "Job": "Job runs pods until enough of them have succeeded.",
    "PodDisruptionBudget": "PodDisruptionBudget limits how many of a set of pods may be evicted at a time.",
    "Lease": "Lease says who holds something, and until when.",
    "Role": "Role is a set of permissions within a namespace.",
    "ClusterRole": "ClusterRole is a set of permissions for the whole cluster.",
    "RoleBinding": "RoleBinding gives a role to subjects within a namespace.",
    "ClusterRoleBinding": "ClusterRoleBinding gives a ClusterRole to subjects.",
    "CustomResourceDefinition": "CustomResourceDefinition makes the server serve another kind.",
    "ObjectMeta": "What every stored object has: its name, labels, owners.",
}
