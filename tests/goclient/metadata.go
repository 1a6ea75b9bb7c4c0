package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// asked counts what a client asks for, lists and watches apart.
type asked struct {
	next           http.RoundTripper
	lists, watches atomic.Int32
}

func (a *asked) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") != "" {
		a.watches.Add(1)
	} else {
		a.lists.Add(1)
	}
	return a.next.RoundTrip(request)
}

func (a *asked) String() string {
	return fmt.Sprintf("%d lists, %d watches", a.lists.Load(), a.watches.Load())
}

// following is an informer of the ConfigMaps' metadata alone, until there is a ConfigMap `end`.
func following(ctx context.Context, r run, counted *asked) error {
	config := rest.CopyConfig(r.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { counted.next = next; return counted })
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	// The server's time may pass faster than ours: the watch is not to end by itself.
	patient := func(options *metav1.ListOptions) {
		if options.TimeoutSeconds != nil {
			options.TimeoutSeconds = pointer(int64(3600))
		}
	}
	maps := corev1.SchemeGroupVersion.WithResource("configmaps")
	informer := metadatainformer.NewFilteredMetadataInformer(client, maps, r.namespace, 0, nil, patient).Informer()
	go informer.Run(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the informer was not synced: %v", counted)
	}
	fmt.Println("synced")
	return eventually(ctx, "the informer sees the end", func() (bool, error) {
		_, there, err := informer.GetStore().GetByKey(r.namespace + "/end")
		return there, err
	})
}

// untilTheEnd lists once and watches once, whatever the server's time does meanwhile; another one makes the ConfigMaps.
func untilTheEnd(ctx context.Context, r run) error {
	var counted asked
	if err := following(ctx, r, &counted); err != nil {
		return err
	}
	return expect("what was asked", &counted, "1 lists, 1 watches")
}

// streamedMetadata gets its initial list by a watch: the bookmark after it must be metadata, too.
func streamedMetadata(ctx context.Context, r run) error {
	if err := os.Setenv("KUBE_FEATURE_WatchListClient", "true"); err != nil {
		return err
	}
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	for _, name := range []string{"a", "end"} {
		made := &corev1.ConfigMap{ObjectMeta: named(name)}
		if _, err := set.CoreV1().ConfigMaps(r.namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
			return step("create", err)
		}
	}
	var counted asked
	if err := following(ctx, r, &counted); err != nil {
		return err
	}
	return expect("what was asked", &counted, "0 lists, 1 watches")
}
