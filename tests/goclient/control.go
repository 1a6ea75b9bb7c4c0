package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type counts struct{ added, updated, deleted atomic.Int32 }

func (c *counts) String() string {
	return fmt.Sprint(c.added.Load(), c.updated.Load(), c.deleted.Load())
}

func (c *counts) handlers() cache.ResourceEventHandlerFuncs {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { c.added.Add(1) },
		UpdateFunc: func(any, any) { c.updated.Add(1) },
		DeleteFunc: func(any) { c.deleted.Add(1) },
	}
}

// informing follows a built-in kind and a custom one by shared informers.
func informing(ctx context.Context, r run) error {
	if err := install(ctx, r); err != nil {
		return err
	}
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	loose, err := dynamic.NewForConfig(r.config)
	if err != nil {
		return err
	}
	maps := set.CoreV1().ConfigMaps(r.namespace)
	gadgets := loose.Resource(resourceOf(r.namespace)).Namespace(r.namespace)
	built := informers.NewSharedInformerFactoryWithOptions(set, 0, informers.WithNamespace(r.namespace))
	custom := dynamicinformer.NewFilteredDynamicSharedInformerFactory(loose, 0, r.namespace, nil)
	var ofMaps, ofGadgets counts
	built.Core().V1().ConfigMaps().Informer().AddEventHandler(ofMaps.handlers())
	custom.ForResource(resourceOf(r.namespace)).Informer().AddEventHandler(ofGadgets.handlers())
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("before")}, metav1.CreateOptions{})
	if err != nil {
		return step("create", err)
	}
	built.Start(ctx.Done())
	custom.Start(ctx.Done())
	for kind, synced := range built.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v was not synced", kind)
		}
	}
	for kind, synced := range custom.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("%v was not synced", kind)
		}
	}
	return inTurn(
		func() error {
			made, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: named("after")}, metav1.CreateOptions{})
			if err != nil {
				return step("create", err)
			}
			made.Data = map[string]string{"a": "b"}
			if _, err := maps.Update(ctx, made, metav1.UpdateOptions{}); err != nil {
				return step("update", err)
			}
			return step("delete", maps.Delete(ctx, "before", metav1.DeleteOptions{}))
		},
		func() error {
			_, err := gadgets.Create(ctx, gadget(r, "a", map[string]any{"size": int64(1)}), metav1.CreateOptions{})
			if err != nil {
				return step("create", err)
			}
			return step("delete", gadgets.Delete(ctx, "a", metav1.DeleteOptions{}))
		},
		func() error {
			return eventually(ctx, "the informers see all", func() (bool, error) {
				return ofMaps.added.Load() >= 2 && ofMaps.updated.Load() == 1 && ofMaps.deleted.Load() == 1 &&
					ofGadgets.added.Load() == 1 && ofGadgets.deleted.Load() == 1, nil
			})
		},
		func() error {
			listed, err := built.Core().V1().ConfigMaps().Lister().ConfigMaps(r.namespace).List(
				labels.SelectorFromSet(labels.Set{"app": "after"}),
			)
			if err != nil {
				return step("list from the cache", err)
			}
			return expect("what the cache has", len(listed), 1)
		},
	)
}

// leading lets two candidates stand: one leads, and when it lets go the other does.
func leading(ctx context.Context, r run) error {
	set, err := kubernetes.NewForConfig(r.config)
	if err != nil {
		return err
	}
	leaders := make(chan string, 2)
	candidate := func(ctx context.Context, name string) {
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: "leader", Namespace: r.namespace},
			Client:     set.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, ReleaseOnCancel: true,
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 200 * time.Millisecond,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) { leaders <- name },
				OnStoppedLeading: func() {},
			},
		})
	}
	next := func() (string, error) {
		select {
		case name := <-leaders:
			return name, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	first, letGo := context.WithCancel(ctx)
	defer letGo()
	go candidate(first, "one")
	leader, err := next()
	if err != nil || leader != "one" {
		return fmt.Errorf("the first leader: %q, %w", leader, err)
	}
	go candidate(ctx, "two")
	letGo()
	leader, err = next()
	if err != nil || leader != "two" {
		return fmt.Errorf("the second leader: %q, %w", leader, err)
	}
	lease, err := set.CoordinationV1().Leases(r.namespace).Get(ctx, "leader", metav1.GetOptions{})
	if err != nil {
		return step("get the lease", err)
	}
	return expect("who holds it", *lease.Spec.HolderIdentity, "two")
}

const finalizer = "goclient.example/cleanup"

// reconciler makes a ConfigMap of its own for each Gadget, and says so in the Gadget's status.
type reconciler struct {
	client.Client
	run run
}

func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	owner := gadget(r.run, "", nil)
	if err := r.Get(ctx, request.NamespacedName, owner); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !owner.GetDeletionTimestamp().IsZero() {
		controllerutil.RemoveFinalizer(owner, finalizer)
		return reconcile.Result{}, client.IgnoreNotFound(r.Update(ctx, owner))
	}
	if controllerutil.AddFinalizer(owner, finalizer) {
		return reconcile.Result{}, r.Update(ctx, owner)
	}
	size, _, _ := unstructured.NestedInt64(owner.Object, "spec", "size")
	child := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: owner.GetName(), Namespace: owner.GetNamespace()}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, child, func() error {
		child.Data = map[string]string{"size": fmt.Sprint(size)}
		return controllerutil.SetControllerReference(owner, child, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	before := owner.DeepCopy()
	owner.Object["status"] = map[string]any{"size": size}
	return reconcile.Result{}, r.Status().Patch(ctx, owner, client.MergeFrom(before))
}

// reconciling is an operator by controller-runtime: it installs its definition, leads, watches, owns, finalizes.
func reconciling(ctx context.Context, r run) error {
	scheme := clientgoscheme.Scheme
	if err := apiextensions.AddToScheme(scheme); err != nil {
		return err
	}
	direct, err := client.New(r.config, client.Options{Scheme: scheme})
	if err != nil {
		return step("make a client", err)
	}
	group := resourceOf(r.namespace).Group
	if err := direct.Create(ctx, definition(group)); err != nil {
		return step("install the definition", err)
	}
	err = eventually(ctx, "the definition is established", func() (bool, error) {
		crd := &apiextensions.CustomResourceDefinition{}
		if err := direct.Get(ctx, client.ObjectKey{Name: "gadgets." + group}, crd); err != nil {
			return false, err
		}
		for _, condition := range crd.Status.Conditions {
			if condition.Type == apiextensions.Established && condition.Status == apiextensions.ConditionTrue {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(gadget(r, "", nil).GroupVersionKind())
				return direct.List(ctx, list, client.InNamespace(r.namespace)) == nil, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(r.config, ctrl.Options{
		Scheme:                  scheme,
		Cache:                   ctrlcache.Options{DefaultNamespaces: map[string]ctrlcache.Config{r.namespace: {}}},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		LeaderElection:          true,
		LeaderElectionID:        "goclient.example",
		LeaderElectionNamespace: r.namespace,
	})
	if err != nil {
		return step("make a manager", err)
	}
	err = ctrl.NewControllerManagedBy(manager).Named("gadget").For(gadget(r, "", nil)).Owns(&corev1.ConfigMap{}).
		Complete(&reconciler{manager.GetClient(), r})
	if err != nil {
		return step("make a controller", err)
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	key := client.ObjectKey{Namespace: r.namespace, Name: "a"}
	child := &corev1.ConfigMap{}
	childHas := func(size string) func() (bool, error) {
		return func() (bool, error) {
			err := direct.Get(ctx, key, child)
			return err == nil && child.Data["size"] == size, client.IgnoreNotFound(err)
		}
	}
	made := gadget(r, "a", map[string]any{"size": int64(2)})
	err = inTurn(
		func() error { return step("create a Gadget", direct.Create(ctx, made)) },
		func() error { return eventually(ctx, "its child is made", childHas("2")) },
		func() error {
			return eventually(ctx, "its status is written", func() (bool, error) {
				if err := direct.Get(ctx, key, made); err != nil {
					return false, err
				}
				size, _, _ := unstructured.NestedInt64(made.Object, "status", "size")
				return size == 2, nil
			})
		},
		func() error { return step("delete the child", direct.Delete(ctx, child)) },
		func() error { return eventually(ctx, "the child is made again", childHas("2")) },
		func() error {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"size": 3}}`))
			return step("patch the Gadget", direct.Patch(ctx, made, patch))
		},
		func() error { return eventually(ctx, "the child follows", childHas("3")) },
		func() error { return step("delete the Gadget", direct.Delete(ctx, made)) },
		func() error {
			return eventually(ctx, "the finalizer lets it go", func() (bool, error) {
				return errors.IsNotFound(direct.Get(ctx, key, made)), nil
			})
		},
		func() error {
			return step("delete all ConfigMaps", direct.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(r.namespace)))
		},
	)
	if err != nil {
		return err
	}
	stop()
	return step("stop the manager", <-ended)
}
