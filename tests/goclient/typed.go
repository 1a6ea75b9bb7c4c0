package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
)

func named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}
}

func pod(name string) corev1.PodSpec {
	return corev1.PodSpec{Containers: []corev1.Container{{
		Name:  name,
		Image: "registry.example/image",
		Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m")},
		},
		ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")},
		}},
		Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}},
	}}}
}

// typed creates one of each kind that operators make, and reads, changes and lists it.
func typed(ctx context.Context, r run) error {
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	maps := set.CoreV1().ConfigMaps(r.namespace)
	deployments := set.AppsV1().Deployments(r.namespace)
	three := int32(3)
	one := intstr.FromInt32(1)
	now := int64(0)
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	return inTurn(
		func() error {
			made, err := maps.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: named("a"), Data: map[string]string{"colour": "blue"}, BinaryData: map[string][]byte{"b": {0, 255}},
			}, metav1.CreateOptions{FieldManager: "goclient"})
			if err != nil {
				return step("create a ConfigMap", err)
			}
			made.Data["colour"] = "red"
			made, err = maps.Update(ctx, made, metav1.UpdateOptions{})
			if err != nil {
				return step("update a ConfigMap", err)
			}
			return expect("the ConfigMap", fmt.Sprint(made.Data, made.BinaryData), "map[colour:red] map[b:[0 255]]")
		},
		func() error {
			_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("a")}, metav1.CreateOptions{})
			return expect("a second of that name", errors.IsAlreadyExists(err), true)
		},
		func() error {
			_, err := maps.Get(ctx, "none", metav1.GetOptions{})
			return expect("a missing one", errors.IsNotFound(err), true)
		},
		func() error {
			made, err := deployments.Create(ctx, &appsv1.Deployment{
				ObjectMeta: named("a"),
				Spec: appsv1.DeploymentSpec{
					Replicas: &three, Selector: selector,
					Template: corev1.PodTemplateSpec{ObjectMeta: named("a"), Spec: pod("a")},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return step("create a Deployment", err)
			}
			container := made.Spec.Template.Spec.Containers[0]
			return expect("its defaults", fmt.Sprint(
				made.Spec.Strategy.Type, container.ReadinessProbe.PeriodSeconds, container.ReadinessProbe.HTTPGet.Port.String(),
				container.Resources.Requests.Cpu(),
			), fmt.Sprint("RollingUpdate", int32(10), "http", "10m"))
		},
		func() error {
			scale, err := deployments.GetScale(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return step("get a scale", err)
			}
			scale.Spec.Replicas = 5
			scale, err = deployments.UpdateScale(ctx, "a", scale, metav1.UpdateOptions{})
			if err != nil {
				return step("update a scale", err)
			}
			return expect("the scale", scale.Spec.Replicas, 5)
		},
		func() error {
			found, err := deployments.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return step("get a Deployment", err)
			}
			found.Status.ObservedGeneration = found.Generation
			_, err = deployments.UpdateStatus(ctx, found, metav1.UpdateOptions{})
			return step("update a status", err)
		},
		func() error {
			_, err := set.PolicyV1().PodDisruptionBudgets(r.namespace).Create(ctx, &policyv1.PodDisruptionBudget{
				ObjectMeta: named("a"), Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: selector},
			}, metav1.CreateOptions{})
			return step("create a PodDisruptionBudget", err)
		},
		func() error {
			_, err := set.RbacV1().Roles(r.namespace).Create(ctx, &rbacv1.Role{
				ObjectMeta: named("a"),
				Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}},
			}, metav1.CreateOptions{})
			return step("create a Role", err)
		},
		func() error {
			_, err := set.CoreV1().Pods(r.namespace).Create(
				ctx, &corev1.Pod{ObjectMeta: named("a"), Spec: pod("a")}, metav1.CreateOptions{},
			)
			if err != nil {
				return step("create a Pod", err)
			}
			return step("evict it", set.PolicyV1().Evictions(r.namespace).Evict(ctx, &policyv1.Eviction{
				ObjectMeta:    metav1.ObjectMeta{Name: "a", Namespace: r.namespace},
				DeleteOptions: &metav1.DeleteOptions{GracePeriodSeconds: &now},
			}))
		},
		func() error {
			listed, err := set.CoreV1().ConfigMaps(r.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=a"})
			if err != nil {
				return step("list ConfigMaps", err)
			}
			return expect("what is listed", len(listed.Items), 1)
		},
		func() error {
			groups, _, err := set.Discovery().ServerGroupsAndResources()
			if err != nil {
				return step("discover", err)
			}
			return expect("that there are groups", len(groups) > 10, true)
		},
		func() error { return described(set) },
	)
}

// described reads the OpenAPI document, which client-go asks for in protobuf alone.
func described(set kubernetes.Interface) error {
	document, err := set.Discovery().OpenAPISchema()
	if err != nil {
		return step("read the OpenAPI document", err)
	}
	for _, definition := range document.Definitions.AdditionalProperties {
		if definition.Name != "io.k8s.api.core.v1.ConfigMap" {
			continue
		}
		for _, property := range definition.Value.Properties.AdditionalProperties {
			if property.Name == "binaryData" {
				values := property.Value.AdditionalProperties.GetSchema()
				return expect("a map of bytes", fmt.Sprint(property.Value.Type.Value, values.Type.Value, values.Format),
					"[object] [string]byte")
			}
		}
	}
	return fmt.Errorf("the document has no ConfigMap with binaryData")
}

// deletes by every way of deleting, with options.
func deletes(ctx context.Context, r run) error {
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	maps := set.CoreV1().ConfigMaps(r.namespace)
	make := func(name string) (*corev1.ConfigMap, error) {
		return maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named(name)}, metav1.CreateOptions{})
	}
	background := metav1.DeletePropagationBackground
	now := int64(0)
	return inTurn(
		func() error {
			if _, err := make("plain"); err != nil {
				return step("create", err)
			}
			return step("delete without options", maps.Delete(ctx, "plain", metav1.DeleteOptions{}))
		},
		func() error {
			made, err := make("options")
			if err != nil {
				return step("create", err)
			}
			wrong := types.UID("0000")
			err = maps.Delete(ctx, "options", metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
			if err := expect("another's uid is a conflict", errors.IsConflict(err), true); err != nil {
				return err
			}
			err = maps.Delete(ctx, "options", metav1.DeleteOptions{DryRun: []string{"All"}})
			if err != nil {
				return step("delete dry", err)
			}
			return step("delete with options", maps.Delete(ctx, "options", metav1.DeleteOptions{
				GracePeriodSeconds: &now, PropagationPolicy: &background,
				Preconditions: &metav1.Preconditions{UID: &made.UID, ResourceVersion: &made.ResourceVersion},
			}))
		},
		func() error {
			_, err := maps.Get(ctx, "options", metav1.GetOptions{})
			return expect("it is gone", errors.IsNotFound(err), true)
		},
		func() error {
			for _, name := range []string{"c", "d"} {
				if _, err := make(name); err != nil {
					return step("create", err)
				}
			}
			err := maps.DeleteCollection(
				ctx, metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{LabelSelector: "app=c"},
			)
			if err != nil {
				return step("delete a collection", err)
			}
			listed, err := maps.List(ctx, metav1.ListOptions{LabelSelector: "app in (c, d)"})
			if err != nil {
				return step("list", err)
			}
			return expect("what is left", len(listed.Items), 1)
		},
		func() error {
			_, err := set.AppsV1().ReplicaSets(r.namespace).Create(ctx, &appsv1.ReplicaSet{
				ObjectMeta: named("a"),
				Spec: appsv1.ReplicaSetSpec{
					Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}},
					Template: corev1.PodTemplateSpec{ObjectMeta: named("a"), Spec: pod("a")},
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return step("create a ReplicaSet", err)
			}
			return step("delete in another group", set.AppsV1().ReplicaSets(r.namespace).Delete(
				ctx, "a", metav1.DeleteOptions{PropagationPolicy: &background},
			))
		},
	)
}

// patches of all four types, and an apply by typed configurations.
func patches(ctx context.Context, r run) error {
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	maps := set.CoreV1().ConfigMaps(r.namespace)
	applied := func(colour string) *applycore.ConfigMapApplyConfiguration {
		return applycore.ConfigMap("a", r.namespace).WithData(map[string]string{"colour": colour})
	}
	patch := func(kind types.PatchType, text string) error {
		_, err := maps.Patch(ctx, "a", kind, []byte(text), metav1.PatchOptions{})
		return step(string(kind), err)
	}
	return inTurn(
		func() error {
			_, err := maps.Apply(ctx, applied("blue"), metav1.ApplyOptions{FieldManager: "one"})
			return step("apply", err)
		},
		func() error {
			_, err := maps.Apply(ctx, applied("red"), metav1.ApplyOptions{FieldManager: "two"})
			return expect("another's colour is a conflict", errors.IsConflict(err), true)
		},
		func() error {
			_, err := maps.Apply(ctx, applied("red"), metav1.ApplyOptions{FieldManager: "two", Force: true})
			return step("apply by force", err)
		},
		func() error { return patch(types.MergePatchType, `{"data": {"m": "1"}}`) },
		func() error { return patch(types.StrategicMergePatchType, `{"data": {"s": "1"}}`) },
		func() error { return patch(types.JSONPatchType, `[{"op": "add", "path": "/data/j", "value": "1"}]`) },
		func() error {
			found, err := maps.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return step("get", err)
			}
			return expect("all of them", found.Data, "map[colour:red j:1 m:1 s:1]")
		},
	)
}
