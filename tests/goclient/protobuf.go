package main

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// inProtobufAlone does what typed does, and watches, as a client that accepts no JSON.
func inProtobufAlone(ctx context.Context, r run) error {
	config := rest.CopyConfig(r.config)
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf"
	if err := typed(ctx, run{config, r.namespace}); err != nil {
		return err
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	wanted := true
	options := metav1.ListOptions{
		AllowWatchBookmarks: true, SendInitialEvents: &wanted,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, LabelSelector: "app=a",
	}
	begun, err := set.AppsV1().Deployments(r.namespace).Watch(ctx, options)
	if err != nil {
		return step("watch", err)
	}
	defer begun.Stop()
	if err := expect("the first event", (<-begun.ResultChan()).Type, watch.Added); err != nil {
		return err
	}
	if err := expect("the second event", (<-begun.ResultChan()).Type, watch.Bookmark); err != nil {
		return err
	}
	options.ResourceVersion = "999999999"
	failing, err := set.AppsV1().Deployments(r.namespace).Watch(ctx, options)
	if err != nil {
		return step("watch from the future", err)
	}
	defer failing.Stop()
	event := <-failing.ResultChan()
	err = errors.FromObject(event.Object)
	tooLarge := errors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
	return expect("the error", fmt.Sprintf("%v %v %v", event.Type, errors.IsTimeout(err), tooLarge), "ERROR true true")
}
