// celtable answers the expressions of a table with Kubernetes' CEL environment, as a CustomResourceDefinition's rules
// meet it: `go run . ../cel_table.json` writes each row's "value" or "error" anew.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/ext"
	"k8s.io/apimachinery/pkg/util/version"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
)

type row struct {
	Expression string `json:"expression"`
	S          string `json:"s"`
	Repeat     int    `json:"repeat,omitempty"` // how many times over `s` stands for itself
	Value      any    `json:"value,omitempty"`
	Error      string `json:"error,omitempty"`
}

func main() {
	if err := rewrite(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func rewrite(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var rows []row
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	base, err := environment.MustBaseEnvSet(version.MajorMinor(1, 34), true).Env(environment.StoredExpressions)
	if err != nil {
		return err
	}
	env, err := base.Extend(ext.Bindings(), cel.Variable("s", cel.StringType))
	if err != nil {
		return err
	}
	for i := range rows {
		rows[i].Value, rows[i].Error = nil, ""
		if value, err := answer(env, rows[i]); err != nil {
			rows[i].Error = err.Error()
		} else {
			rows[i].Value = value
		}
	}
	var out bytes.Buffer
	out.WriteString("[")
	for i, each := range rows {
		if i > 0 {
			out.WriteString(",")
		}
		out.WriteString("\n  ")
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(each); err != nil {
			return err
		}
		out.Truncate(out.Len() - 1)
	}
	out.WriteString("\n]\n")
	return os.WriteFile(path, out.Bytes(), 0o644)
}

func answer(env *cel.Env, each row) (any, error) {
	ast, issues := env.Compile(each.Expression)
	if issues.Err() != nil {
		return nil, issues.Err()
	}
	program, err := env.Program(ast,
		cel.CostLimit(celconfig.PerCallLimit),
		cel.CostTracking(&library.CostEstimator{}),
	)
	if err != nil {
		return nil, err
	}
	s := each.S
	if each.Repeat > 0 {
		s = string(bytes.Repeat([]byte(s), each.Repeat))
	}
	value, _, err := program.Eval(map[string]any{"s": s})
	if err != nil {
		return nil, err
	}
	if plain, err := value.ConvertToNative(reflect.TypeOf([]string{})); err == nil {
		return plain, nil
	}
	return value.Value(), nil
}
