// The clients that Go programs are made of, each as a case that any Kubernetes API server must serve.
//
// usage: goclient CASE NAMESPACE, with KUBECONFIG in the environment.
//
// Exit code 0: all was as it should be. Otherwise the error names the step. Every case leaves client-go's settings as
// they come, above all the encoding of built-in kinds.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// deadline of a whole case; a server that is slow is not wrong.
const deadline = 2 * time.Minute

type run struct {
	config    *rest.Config
	namespace string
}

var cases = map[string]func(context.Context, run) error{
	"typed":              typed,
	"protobuf":           inProtobufAlone,
	"deletes":            deletes,
	"patches":            patches,
	"definitions":        definitions,
	"dynamic":            dynamics,
	"metadata":           metadatas,
	"metadata-watch":     untilTheEnd,
	"metadata-streamed":  streamedMetadata,
	"informers":          informing,
	"leader-election":    leading,
	"controller-runtime": reconciling,
}

func main() {
	if len(os.Args) != 3 || cases[os.Args[1]] == nil {
		names := []string{}
		for name := range cases {
			names = append(names, name)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "usage: goclient %s NAMESPACE\n", strings.Join(names, "|"))
		os.Exit(2)
	}
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		err = cases[os.Args[1]](ctx, run{config, os.Args[2]})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// step names what went wrong.
func step(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// inTurn stops at the first step that fails.
func inTurn(steps ...func() error) error {
	for _, one := range steps {
		if err := one(); err != nil {
			return err
		}
	}
	return nil
}

// eventually waits until `met` says so.
func eventually(ctx context.Context, what string, met func() (bool, error)) error {
	for {
		ok, err := met()
		if err != nil {
			return step(what, err)
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: did not happen: %w", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func expect(what string, got, wanted any) error {
	if fmt.Sprint(got) != fmt.Sprint(wanted) {
		return fmt.Errorf("%s: got %v, wanted %v", what, got, wanted)
	}
	return nil
}
