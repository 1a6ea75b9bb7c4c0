package main

import (
	"context"
	"fmt"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
)

var gadgets = schema.GroupVersionResource{Group: "", Version: "v1", Resource: "gadgets"}

// resourceOf is of the case's own group, so that cases do not meet.
func resourceOf(namespace string) schema.GroupVersionResource {
	found := gadgets
	found.Group = namespace + ".goclient.example"
	return found
}

func pointer[T any](value T) *T { return &value }

// definition uses what a definition may hold: rules, defaults, lists with keys, either of two types, printed columns.
func definition(group string) *apiextensions.CustomResourceDefinition {
	spec := apiextensions.JSONSchemaProps{
		Type: "object", Required: []string{"size"}, MinProperties: pointer(int64(1)),
		Properties: map[string]apiextensions.JSONSchemaProps{
			"size": {Type: "integer", Minimum: pointer(0.0), Maximum: pointer(10.5), Format: "int32"},
			"mode": {
				Type: "string", Default: &apiextensions.JSON{Raw: []byte(`"Fast"`)},
				Enum: []apiextensions.JSON{{Raw: []byte(`"Fast"`)}, {Raw: []byte(`"Slow"`)}},
			},
			"port": {XIntOrString: true, AnyOf: []apiextensions.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}},
			"parts": {
				Type: "array", XListType: pointer("map"), XListMapKeys: []string{"name"}, MaxItems: pointer(int64(5)),
				Items: &apiextensions.JSONSchemaPropsOrArray{Schema: &apiextensions.JSONSchemaProps{
					Type: "object", Required: []string{"name"},
					Properties: map[string]apiextensions.JSONSchemaProps{"name": {Type: "string"}},
				}},
			},
			"labels": {
				Type: "object",
				AdditionalProperties: &apiextensions.JSONSchemaPropsOrBool{
					Allows: true, Schema: &apiextensions.JSONSchemaProps{Type: "string"},
				},
			},
			"raw": {Type: "object", XPreserveUnknownFields: pointer(true), Nullable: true},
		},
		XValidations: apiextensions.ValidationRules{{
			Rule: "self.size < 10", Message: "size must be below 10", Reason: pointer(apiextensions.FieldValueInvalid),
		}},
	}
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "gadgets." + group},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: group,
			Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{
				Plural: "gadgets", Singular: "gadget", Kind: "Gadget", ListKind: "GadgetList", ShortNames: []string{"gd"},
			},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensions.JSONSchemaProps{
						"spec":   spec,
						"status": {Type: "object", XPreserveUnknownFields: pointer(true)},
					},
				}},
				Subresources: &apiextensions.CustomResourceSubresources{
					Status: &apiextensions.CustomResourceSubresourceStatus{},
					Scale: &apiextensions.CustomResourceSubresourceScale{
						SpecReplicasPath: ".spec.size", StatusReplicasPath: ".status.size",
					},
				},
				AdditionalPrinterColumns: []apiextensions.CustomResourceColumnDefinition{
					{Name: "Size", Type: "integer", JSONPath: ".spec.size", Priority: 1},
				},
				SelectableFields: []apiextensions.SelectableField{{JSONPath: ".spec.mode"}},
			}},
		},
	}
}

// install makes the definition by the typed client, and waits until its kind is served.
func install(ctx context.Context, r run) error {
	set, err := clientset.NewForConfig(r.config)
	if err != nil {
		return err
	}
	group := resourceOf(r.namespace).Group
	crds := set.ApiextensionsV1().CustomResourceDefinitions()
	if _, err := crds.Create(ctx, definition(group), metav1.CreateOptions{}); err != nil {
		return step("create a CustomResourceDefinition", err)
	}
	client, err := dynamic.NewForConfig(r.config)
	if err != nil {
		return err
	}
	return eventually(ctx, "the kind is served", func() (bool, error) {
		_, err := client.Resource(resourceOf(r.namespace)).Namespace(r.namespace).List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
}

// definitions does with CustomResourceDefinitions what an operator's installer does.
func definitions(ctx context.Context, r run) error {
	set, err := clientset.NewForConfig(r.config)
	if err != nil {
		return err
	}
	crds := set.ApiextensionsV1().CustomResourceDefinitions()
	group := resourceOf(r.namespace).Group
	name := "gadgets." + group
	return inTurn(
		func() error { return install(ctx, r) },
		func() error {
			found, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return step("get", err)
			}
			version := found.Spec.Versions[0]
			spec := version.Schema.OpenAPIV3Schema.Properties["spec"]
			return expect("what was sent is stored", fmt.Sprint(
				string(spec.Properties["mode"].Default.Raw), len(spec.Properties["mode"].Enum), *spec.Properties["size"].Maximum,
				*spec.Properties["size"].Minimum, spec.Properties["parts"].Items.Schema.Required,
				spec.Properties["labels"].AdditionalProperties.Schema.Type, spec.Properties["port"].XIntOrString,
				spec.XValidations[0].Rule, *spec.Properties["parts"].XListType, *spec.Properties["raw"].XPreserveUnknownFields,
				version.Subresources.Scale.SpecReplicasPath, version.AdditionalPrinterColumns[0].Priority,
			), fmt.Sprint(
				`"Fast"`, 2, 10.5, 0.0, []string{"name"}, "string", true, "self.size < 10", "map", true, ".spec.size", int32(1),
			))
		},
		func() error {
			found, err := crds.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return step("get", err)
			}
			found.Spec.Names.Categories = []string{"all"}
			_, err = crds.Update(ctx, found, metav1.UpdateOptions{})
			if errors.IsConflict(err) {
				return nil // its controller wrote the status meanwhile
			}
			return step("update", err)
		},
		func() error { return step("delete", crds.Delete(ctx, name, metav1.DeleteOptions{})) },
		func() error {
			return eventually(ctx, "it is gone", func() (bool, error) {
				_, err := crds.Get(ctx, name, metav1.GetOptions{})
				return errors.IsNotFound(err), nil
			})
		},
	)
}

func gadget(r run, name string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": resourceOf(r.namespace).GroupVersion().String(),
		"kind":       "Gadget",
		"metadata":   map[string]any{"name": name, "namespace": r.namespace},
		"spec":       spec,
	}}
}

// dynamics is the dynamic client on custom resources.
func dynamics(ctx context.Context, r run) error {
	if err := install(ctx, r); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(r.config)
	if err != nil {
		return err
	}
	resource := client.Resource(resourceOf(r.namespace)).Namespace(r.namespace)
	var events watch.Interface
	return inTurn(
		func() (err error) {
			events, err = resource.Watch(ctx, metav1.ListOptions{})
			return step("watch", err)
		},
		func() error {
			made, err := resource.Create(ctx, gadget(r, "a", map[string]any{"size": int64(2)}), metav1.CreateOptions{})
			if err != nil {
				return step("create", err)
			}
			mode, _, _ := unstructured.NestedString(made.Object, "spec", "mode")
			return expect("its default", mode, "Fast")
		},
		func() error {
			_, err := resource.Create(ctx, gadget(r, "b", map[string]any{"size": int64(10)}), metav1.CreateOptions{})
			if !errors.IsInvalid(err) {
				return fmt.Errorf("a rule is broken: %v", err)
			}
			return expect("the rule's message", strings.Contains(err.Error(), "size must be below 10"), true)
		},
		func() error {
			body := gadget(r, "c", map[string]any{"size": int64(1)})
			_, err := resource.Apply(ctx, "c", body, metav1.ApplyOptions{FieldManager: "goclient"})
			return step("apply", err)
		},
		func() error {
			found, err := resource.Get(ctx, "a", metav1.GetOptions{})
			if err != nil {
				return step("get", err)
			}
			found.Object["status"] = map[string]any{"size": int64(2)}
			_, err = resource.UpdateStatus(ctx, found, metav1.UpdateOptions{})
			return step("update the status", err)
		},
		func() error {
			listed, err := resource.List(ctx, metav1.ListOptions{FieldSelector: "spec.mode=Fast", Limit: 1})
			if err != nil {
				return step("list a page", err)
			}
			return expect("that there is more", len(listed.Items) == 1 && listed.GetContinue() != "", true)
		},
		func() error {
			return step("delete", resource.Delete(ctx, "a", metav1.DeleteOptions{}))
		},
		func() error {
			seen := []string{}
			for len(seen) < 4 {
				select {
				case event, open := <-events.ResultChan():
					if !open {
						return fmt.Errorf("the watch ended after %v", seen)
					}
					name := event.Object.(*unstructured.Unstructured).GetName()
					seen = append(seen, fmt.Sprintf("%s %s", event.Type, name))
				case <-ctx.Done():
					return fmt.Errorf("the watch saw only %v", seen)
				}
			}
			events.Stop()
			return expect("what the watch saw", seen, "[ADDED a ADDED c MODIFIED a DELETED a]")
		},
	)
}

// metadatas is the metadata client, which garbage collectors use.
func metadatas(ctx context.Context, r run) error {
	if err := install(ctx, r); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(r.config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(r.config)
	if err != nil {
		return err
	}
	resource := client.Resource(resourceOf(r.namespace)).Namespace(r.namespace)
	partial := meta.Resource(resourceOf(r.namespace)).Namespace(r.namespace)
	return inTurn(
		func() error {
			_, err := resource.Create(ctx, gadget(r, "a", map[string]any{"size": int64(2)}), metav1.CreateOptions{})
			return step("create", err)
		},
		func() error {
			listed, err := partial.List(ctx, metav1.ListOptions{})
			if err != nil {
				return step("list metadata", err)
			}
			return expect("what is listed", len(listed.Items), 1)
		},
		func() error { return step("delete by metadata", partial.Delete(ctx, "a", metav1.DeleteOptions{})) },
		func() error {
			_, err := partial.Get(ctx, "a", metav1.GetOptions{})
			return expect("it is gone", errors.IsNotFound(err), true)
		},
	)
}
