// Command kubernetes_facts prints as JSON what the sources of one minor version of Kubernetes declare: flags, feature
// gates, admission plug-ins, volume plug-ins, cloud providers and versions of configuration files.
//
// usage: go run main.go PATH=FOLDER...
//
// Each argument is the path of a module and the folder with its sources (k8s.io/kubernetes, k8s.io/apiserver, ...). The
// sources are parsed and type-checked; they are not built or run. Types of modules that are not given are unknown.
package main

import (
	"encoding/json"
	"go/ast"
	"go/build"
	"go/constant"
	"go/parser"
	"go/printer"
	"go/token"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
)

// commands has for each component the package and the functions that make its command; one of several may be missing.
var commands = map[string][]string{
	"kube-apiserver":          {"k8s.io/kubernetes/cmd/kube-apiserver/app", "NewAPIServerCommand"},
	"kube-controller-manager": {"k8s.io/kubernetes/cmd/kube-controller-manager/app", "NewControllerManagerCommand"},
	// The scheduler keeps its set of flags in a field from 1.23 on.
	"kube-scheduler": {"k8s.io/kubernetes/cmd/kube-scheduler/app", "NewSchedulerCommand", "k8s.io/kubernetes/cmd/kube-scheduler/app/options.initFlags"},
	"kubelet":        {"k8s.io/kubernetes/cmd/kubelet/app", "NewKubeletCommand"},
	// run adds the flags of klog to commands that lack them.
	"kube-proxy":               {"k8s.io/kubernetes/cmd/kube-proxy/app", "NewProxyCommand", "k8s.io/component-base/cli.run"},
	"cloud-controller-manager": {"k8s.io/cloud-provider/app", "NewCloudControllerManagerCommand"},
	"kubeadm":                  {"k8s.io/kubernetes/cmd/kubeadm/app/cmd", "NewKubeadmCommand"},
}

// configurations has the package of each version of a configuration file; not every minor version has each.
var configurations = map[string]string{
	"kubelet.config.k8s.io/v1beta1":       "k8s.io/kubelet/config/v1beta1",
	"kubeproxy.config.k8s.io/v1alpha1":    "k8s.io/kube-proxy/config/v1alpha1",
	"kubescheduler.config.k8s.io/v1beta1": "k8s.io/kube-scheduler/config/v1beta1",
	"kubescheduler.config.k8s.io/v1beta2": "k8s.io/kube-scheduler/config/v1beta2",
	"kubescheduler.config.k8s.io/v1beta3": "k8s.io/kube-scheduler/config/v1beta3",
	"kubescheduler.config.k8s.io/v1":      "k8s.io/kube-scheduler/config/v1",
	"kubeadm.k8s.io/v1beta2":              "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1beta2",
	"kubeadm.k8s.io/v1beta3":              "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1beta3",
	"kubeadm.k8s.io/v1beta4":              "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1beta4",
	"kubeadm.k8s.io/v1":                   "k8s.io/kubernetes/cmd/kubeadm/app/apis/kubeadm/v1",
	"audit.k8s.io/v1alpha1":               "k8s.io/apiserver/pkg/apis/audit/v1alpha1",
	"audit.k8s.io/v1beta1":                "k8s.io/apiserver/pkg/apis/audit/v1beta1",
	"audit.k8s.io/v1":                     "k8s.io/apiserver/pkg/apis/audit/v1",
}

const (
	plugins   = "k8s.io/kubernetes/pkg/kubeapiserver/options"
	volumes   = "k8s.io/kubernetes/pkg/volume/"
	providers = "k8s.io/legacy-cloud-providers/"
)

// Gate is a feature gate as one minor version has it; each specification is from a minor version on (0: not said).
type Gate struct {
	Since   int    `json:"since"`
	Stage   string `json:"stage"`
	Default bool   `json:"default"`
	Locked  bool   `json:"locked"`
}

// Facts is what is printed.
type Facts struct {
	Flags          map[string]map[string]string `json:"flags"` // by component and name, with the text of the deprecation
	Gates          map[string][]Gate            `json:"gates"`
	Admission      []string                     `json:"admission"`
	Volumes        map[string]bool              `json:"volumes"` // folders of plug-ins, and whether they attach
	Providers      []string                     `json:"providers"`
	Configurations []string                     `json:"configurations"`
	Metrics        map[string]string            `json:"metrics"`    // by full name, with the version that deprecates it
	Kubeadm        map[string][]string          `json:"kubeadm"`    // labels and taints of nodes: by "labels" and "taints"
	Unreadable     []string                     `json:"unreadable"` // what was expected and not found
}

type source struct {
	types *types.Package
	files []*ast.File
	info  *types.Info
}

type reader struct {
	modules map[string]string
	set     *token.FileSet
	sources map[string]*source
	bodies  map[types.Object]*ast.FuncDecl
	from    map[types.Object]*source
	texts   map[types.Object]string // of variables, and of parameters in the call that is followed
	facts   Facts
}

func main() {
	r := &reader{
		modules: map[string]string{}, set: token.NewFileSet(), sources: map[string]*source{},
		bodies: map[types.Object]*ast.FuncDecl{}, from: map[types.Object]*source{}, texts: map[types.Object]string{},
		facts: Facts{Flags: map[string]map[string]string{}, Gates: map[string][]Gate{}, Volumes: map[string]bool{},
			Admission: []string{}, Providers: []string{}, Metrics: map[string]string{}, Kubeadm: map[string][]string{},
			Unreadable: []string{}},
	}
	for _, argument := range os.Args[1:] {
		module, folder, _ := strings.Cut(argument, "=")
		r.modules[module] = folder
	}
	for component, at := range commands {
		r.readFlags(component, at[0], at[1:])
	}
	found := map[string]bool{}
	for version, at := range configurations {
		if r.read(at) != nil {
			found[version] = true
		}
	}
	r.facts.Configurations = names(found)
	r.readAdmission()
	// The lists of gates are in packages that the components import, and so have been read.
	// What a list in a folder `features` says comes before what another package says (component-base/metrics).
	for _, inFeatures := range []bool{true, false} {
		for _, name := range names(r.sources) {
			if each := r.sources[name]; each != nil && path.Base(name) == "features" == inFeatures && !strings.Contains(name, "/kubeadm/") {
				r.readGates(each)
			}
		}
	}
	r.readImports()
	r.readMetrics()
	r.readKubeadm()
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(r.facts); err != nil {
		panic(err)
	}
}

// Import implements types.Importer; a package of another module is empty.
func (r *reader) Import(name string) (*types.Package, error) {
	if found := r.read(name); found != nil {
		return found.types, nil
	}
	last := path.Base(name)
	if regexp.MustCompile(`^v\d+$`).MatchString(last) {
		last = path.Base(path.Dir(name))
	}
	empty := types.NewPackage(name, strings.ReplaceAll(last, "-", "_"))
	empty.MarkComplete()
	return empty, nil
}

// read returns the package, or nil if no module has it.
func (r *reader) read(name string) *source {
	if found, done := r.sources[name]; done {
		return found
	}
	r.sources[name] = nil
	folder := ""
	for module, at := range r.modules {
		if name == module || strings.HasPrefix(name, module+"/") {
			folder = filepath.Join(at, strings.TrimPrefix(name, module))
		}
	}
	entries, err := os.ReadDir(folder)
	if folder == "" || err != nil {
		return nil
	}
	context := build.Default
	context.GOOS, context.GOARCH, context.CgoEnabled = "linux", "amd64", true
	var files []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		if fits, err := context.MatchFile(folder, entry.Name()); err != nil || !fits {
			continue
		}
		if file, err := parser.ParseFile(r.set, filepath.Join(folder, entry.Name()), nil, parser.SkipObjectResolution); err == nil {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil
	}
	found := &source{files: files, info: &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
	}}
	configuration := types.Config{Importer: r, Error: func(error) {}, FakeImportC: true}
	found.types, _ = configuration.Check(name, r.set, files, found.info)
	r.sources[name] = found
	for _, file := range files {
		for _, declaration := range file.Decls {
			if function, is := declaration.(*ast.FuncDecl); is && function.Body != nil {
				object := found.info.Defs[function.Name]
				r.bodies[object], r.from[object] = function, found
			}
			if general, is := declaration.(*ast.GenDecl); is && general.Tok == token.VAR {
				r.readVariables(found, general)
			}
		}
	}
	return found
}

// readVariables keeps the texts with which variables of a package begin: parts of names of metrics.
func (r *reader) readVariables(from *source, declaration *ast.GenDecl) {
	for _, specification := range declaration.Specs {
		value, is := specification.(*ast.ValueSpec)
		if !is || len(value.Names) != len(value.Values) {
			continue
		}
		for index, name := range value.Names {
			if literal, is := value.Values[index].(*ast.BasicLit); is && literal.Kind == token.STRING {
				r.texts[from.info.Defs[name]] = r.text(from, literal)
			}
		}
	}
}

func (r *reader) readFlags(component, name string, functions []string) {
	flags, seen := map[string]string{}, map[string]bool{}
	for _, function := range functions {
		at := name
		if dot := strings.LastIndex(function, "."); dot > 0 {
			at, function = function[:dot], function[dot+1:]
		}
		from := r.read(at)
		for object := range r.bodies {
			if from != nil && object != nil && r.from[object] == from && object.Name() == function {
				r.follow(object, flags, seen, "")
			}
		}
	}
	if len(flags) == 0 {
		r.facts.Unreadable = append(r.facts.Unreadable, component)
		return
	}
	r.facts.Flags[component] = flags
}

var (
	registers = regexp.MustCompile(`^((Bool|String|U?[Ii]nt(8|16|32|64)?|Duration|Float(32|64)|StringSlice|StringArray|` +
		`StringTo(String|Int|Int64)|IP|IPNet|IPMask|IPSlice|IntSlice|Int32Slice|BoolSlice|DurationSlice|Count|BytesHex|` +
		`BytesBase64)(Var)?(P|Var)?P?|Var|VarP|VarPF|Func|register|Register|registerDeprecated)$`)
	flagName = regexp.MustCompile(`^[a-z][a-zA-Z0-9_.-]*$`)
	takes    = regexp.MustCompile(`[fF]lagSet|\bcobra\.Command`)
)

// follow adds the flags that a function registers, and those of the functions with a set of flags that it names.
func (r *reader) follow(object types.Object, flags map[string]string, seen map[string]bool, texts string) {
	function := r.bodies[object]
	key := r.set.Position(object.Pos()).String() + texts
	if function == nil || seen[key] {
		return
	}
	seen[key] = true
	from := r.from[object]
	if strings.HasSuffix(object.Pkg().Path(), "component-base/logs") && usesKlogFlags(from) {
		flags["(klog)"] = ""
	}
	ast.Inspect(function.Body, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.Ident:
			r.followNamed(from.info.Uses[node], nil, flags, seen)
		case *ast.CallExpr:
			r.addCall(from, node, flags)
			if selector, is := node.Fun.(*ast.SelectorExpr); is {
				r.followNamed(from.info.Uses[selector.Sel], r.constants(from, node.Args), flags, seen)
			}
		}
		return true
	})
}

// constants returns the texts among the arguments of a call, by their places.
func (r *reader) constants(from *source, arguments []ast.Expr) map[int]string {
	found := map[int]string{}
	for index, argument := range arguments {
		if value := r.text(from, argument); value != "" {
			found[index] = value
		}
	}
	return found
}

// usesKlogFlags returns whether the package gives a component all the flags of klog.
func usesKlogFlags(from *source) bool {
	found := false
	for _, file := range from.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if selector, is := node.(*ast.SelectorExpr); is && selector.Sel.Name == "InitFlags" {
				found = true
			}
			return true
		})
	}
	return found
}

func (r *reader) followNamed(object types.Object, given map[int]string, flags map[string]string, seen map[string]bool) {
	function, is := object.(*types.Func)
	if !is {
		return
	}
	function = function.Origin()
	signature := function.Type().(*types.Signature)
	if declared := r.bodies[function]; declared != nil {
		var written strings.Builder
		_ = printer.Fprint(&written, r.set, declared.Type)
		if !takes.MatchString(written.String()) {
			return
		}
		texts := ""
		for index := range signature.Params().Len() {
			if value := given[index]; value != "" {
				r.texts[signature.Params().At(index)] = value
				texts += " " + value
			}
		}
		r.follow(function, flags, seen, texts)
		return
	}
	// A method of an interface: those of the types in its package.
	if signature.Recv() != nil && function.Pkg() != nil && types.IsInterface(signature.Recv().Type()) {
		for other, declared := range r.bodies {
			if other != nil && declared.Recv != nil && other.Name() == function.Name() && other.Pkg() == function.Pkg() {
				r.followNamed(other, given, flags, seen)
			}
		}
	}
}

func (r *reader) addCall(from *source, call *ast.CallExpr, flags map[string]string) {
	name := ""
	switch function := call.Fun.(type) {
	case *ast.SelectorExpr:
		name = function.Sel.Name
	case *ast.Ident:
		name = function.Name
	}
	if name == "MarkDeprecated" && len(call.Args) == 2 {
		if flag := r.text(from, call.Args[0]); flag != "" {
			flags[normal(flag)] = orDash(r.text(from, call.Args[1]))
		}
		return
	}
	if name == "AddFlag" && len(call.Args) == 1 {
		ast.Inspect(call.Args[0], func(node ast.Node) bool {
			if inner, is := node.(*ast.CallExpr); is && len(inner.Args) == 1 {
				if selector, is := inner.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "Lookup" {
					add(flags, r.text(from, inner.Args[0]))
				}
			}
			return true
		})
	}
	if !registers.MatchString(name) {
		return
	}
	for index, argument := range call.Args {
		if flag := r.text(from, argument); flag != "" && flagName.MatchString(flag) {
			// The first text is the name; only a pointer or sets of flags come before it.
			add(flags, flag)
			return
		} else if index > 1 {
			return
		}
	}
}

func add(flags map[string]string, name string) {
	if _, known := flags[normal(name)]; !known && flagName.MatchString(name) {
		flags[normal(name)] = ""
	}
}

func normal(name string) string { return strings.ReplaceAll(name, "_", "-") }

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// text returns the value of a constant text, or nothing.
func (r *reader) text(from *source, expression ast.Expr) string {
	if value := from.info.Types[expression].Value; value != nil && value.Kind() == constant.String {
		return constant.StringVal(value)
	}
	// Within a call of an unknown package, the checker visits no arguments.
	switch literal := expression.(type) {
	case *ast.BasicLit:
		if literal.Kind == token.STRING {
			return constant.StringVal(constant.MakeFromLiteral(literal.Value, token.STRING, 0))
		}
	case *ast.BinaryExpr:
		if one, other := r.text(from, literal.X), r.text(from, literal.Y); one != "" && other != "" {
			return one + other
		}
	case *ast.CallExpr:
		if selector, is := literal.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "BuildFQName" && len(literal.Args) == 3 {
			return fullName(r.text(from, literal.Args[0]), r.text(from, literal.Args[1]), r.text(from, literal.Args[2]))
		}
		// string(Name), or fmt.Sprintf("audit-%s-mode", name)
		if format, parts, is := strings.Cut(r.first(from, literal), "%s"); is && len(literal.Args) == 2 {
			if value := r.text(from, literal.Args[1]); value != "" {
				return format + value + parts
			}
		} else if name, is := literal.Fun.(*ast.Ident); is && name.Name == "string" {
			return r.first(from, literal)
		}
	case *ast.Ident:
		return r.named(from.info.Uses[literal])
	case *ast.SelectorExpr:
		return r.named(from.info.Uses[literal.Sel])
	}
	return ""
}

func (r *reader) first(from *source, call *ast.CallExpr) string {
	if len(call.Args) == 0 {
		return ""
	}
	return r.text(from, call.Args[0])
}

func (r *reader) named(object types.Object) string {
	if value, is := object.(*types.Const); is && value.Val().Kind() == constant.String {
		return constant.StringVal(value.Val())
	}
	return r.texts[object]
}

var gateMap = regexp.MustCompile(`^map\[(\w+\.)?Feature\](\w+\.)?(FeatureSpec|VersionedSpecs)$`)

func (r *reader) readGates(from *source) {
	for _, file := range from.files {
		ast.Inspect(file, func(node ast.Node) bool {
			literal, is := node.(*ast.CompositeLit)
			if !is || literal.Type == nil {
				return true
			}
			var written strings.Builder
			_ = printer.Fprint(&written, r.set, literal.Type)
			if !gateMap.MatchString(written.String()) {
				return true
			}
			for _, element := range literal.Elts {
				pair, is := element.(*ast.KeyValueExpr)
				if !is {
					continue
				}
				name := r.text(from, pair.Key)
				specification, is := pair.Value.(*ast.CompositeLit)
				if name == "" || !is {
					continue
				}
				var gates []Gate
				if strings.HasSuffix(written.String(), "VersionedSpecs") {
					for _, each := range specification.Elts {
						if inner, is := each.(*ast.CompositeLit); is {
							gates = append(gates, r.gate(from, inner))
						}
					}
				} else {
					gates = []Gate{r.gate(from, specification)}
				}
				// pkg/features repeats gates of apiserver without their history.
				if len(gates) > len(r.facts.Gates[name]) {
					r.facts.Gates[name] = gates
				}
			}
			return true
		})
	}
}

func (r *reader) gate(from *source, literal *ast.CompositeLit) Gate {
	found := Gate{}
	for _, element := range literal.Elts {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			continue
		}
		key := pair.Key.(*ast.Ident).Name
		switch key {
		case "Default":
			found.Default = isTrue(pair.Value)
		case "LockToDefault":
			found.Locked = isTrue(pair.Value)
		case "PreRelease":
			if selector, is := pair.Value.(*ast.SelectorExpr); is {
				found.Stage = selector.Sel.Name
			} else if name, is := pair.Value.(*ast.Ident); is {
				found.Stage = name.Name
			}
		case "Version":
			if call, is := pair.Value.(*ast.CallExpr); is && len(call.Args) > 0 {
				if minor := regexp.MustCompile(`^1\.(\d+)$`).FindStringSubmatch(r.text(from, call.Args[0])); minor != nil {
					for _, digit := range minor[1] {
						found.Since = found.Since*10 + int(digit-'0')
					}
				}
			}
		}
	}
	return found
}

var metricOptions = regexp.MustCompile(`^(\w+\.)?(Counter|Gauge|Histogram|Summary|TimingHistogram|Kube)?Opts$`)

// readMetrics finds the metrics that the packages of the components declare by options or by a description. A name that
// is not constant is left out.
func (r *reader) readMetrics() {
	// The commands' main packages import these, and are not read.
	root := r.modules["k8s.io/component-base"]
	_ = filepath.WalkDir(filepath.Join(root, "metrics", "prometheus"), func(at string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			r.read("k8s.io/component-base" + filepath.ToSlash(strings.TrimPrefix(at, root)))
		}
		return nil
	})
	for _, name := range names(r.sources) {
		from := r.sources[name]
		if from == nil {
			continue
		}
		for _, file := range from.files {
			ast.Inspect(file, func(node ast.Node) bool {
				switch node := node.(type) {
				case *ast.CompositeLit:
					r.addMetricOptions(from, node)
				case *ast.CallExpr:
					if selector, is := node.Fun.(*ast.SelectorExpr); is && selector.Sel.Name == "NewDesc" && len(node.Args) > 3 {
						deprecated := ""
						if len(node.Args) > 5 {
							deprecated = r.text(from, node.Args[5])
						}
						r.addMetric(r.text(from, node.Args[0]), deprecated)
					}
				}
				return true
			})
		}
	}
	if len(r.facts.Metrics) == 0 {
		r.facts.Unreadable = append(r.facts.Unreadable, "metrics")
	}
}

func (r *reader) addMetricOptions(from *source, literal *ast.CompositeLit) {
	var written strings.Builder
	if literal.Type == nil {
		return
	}
	_ = printer.Fprint(&written, r.set, literal.Type)
	if !metricOptions.MatchString(written.String()) {
		return
	}
	texts := map[string]string{}
	for _, element := range literal.Elts {
		pair, is := element.(*ast.KeyValueExpr)
		if !is {
			return
		}
		key, is := pair.Key.(*ast.Ident)
		if !is {
			return
		}
		texts[key.Name] = r.text(from, pair.Value)
		empty := from.info.Types[pair.Value].Value != nil
		if part := key.Name; texts[part] == "" && !empty && (part == "Namespace" || part == "Subsystem" || part == "Name") {
			return
		}
	}
	r.addMetric(fullName(texts["Namespace"], texts["Subsystem"], texts["Name"]), texts["DeprecatedVersion"])
}

// fullName joins the parts of a name as prometheus.BuildFQName does.
func fullName(parts ...string) string {
	var given []string
	for _, part := range parts {
		if part != "" {
			given = append(given, part)
		}
	}
	if parts[len(parts)-1] == "" {
		return ""
	}
	return strings.Join(given, "_")
}

// addMetric adds a metric; of several declarations one that is not deprecated counts.
func (r *reader) addMetric(name, deprecated string) {
	before, known := r.facts.Metrics[name]
	if name == "" || known && before == "" {
		return
	}
	r.facts.Metrics[name] = deprecated
}

// readKubeadm finds the labels that kubeadm gives to nodes of the control plane, and the taints that it gives by default.
func (r *reader) readKubeadm() {
	labels := r.literal("k8s.io/kubernetes/cmd/kubeadm/app/phases/markcontrolplane", func(written string) bool { return written == "[]string" })
	taints := r.literal("k8s.io/kubernetes/cmd/kubeadm/app/util/config", func(written string) bool {
		return strings.HasPrefix(written, "[]") && strings.HasSuffix(written, ".Taint")
	})
	keys := map[string]string{}
	if constants := r.read("k8s.io/kubernetes/cmd/kubeadm/app/constants"); constants != nil {
		for _, file := range constants.files {
			ast.Inspect(file, func(node ast.Node) bool {
				value, is := node.(*ast.ValueSpec)
				if !is || len(value.Values) != 1 {
					return true
				}
				if literal, is := value.Values[0].(*ast.CompositeLit); is {
					for _, element := range literal.Elts {
						if pair, is := element.(*ast.KeyValueExpr); is {
							if key, is := pair.Key.(*ast.Ident); is && key.Name == "Key" {
								keys[value.Names[0].Name] = r.text(constants, pair.Value)
							}
						}
					}
				}
				return true
			})
		}
	}
	r.facts.Kubeadm["labels"], r.facts.Kubeadm["taints"] = []string{}, []string{}
	if from := r.read("k8s.io/kubernetes/cmd/kubeadm/app/phases/markcontrolplane"); from != nil {
		for _, element := range labels {
			if text := r.text(from, element); text != "" {
				r.facts.Kubeadm["labels"] = append(r.facts.Kubeadm["labels"], text)
			}
		}
	}
	for _, element := range taints {
		if selector, is := element.(*ast.SelectorExpr); is && keys[selector.Sel.Name] != "" {
			r.facts.Kubeadm["taints"] = append(r.facts.Kubeadm["taints"], keys[selector.Sel.Name])
		}
	}
	if len(r.facts.Kubeadm["labels"]) == 0 || len(r.facts.Kubeadm["taints"]) == 0 {
		r.facts.Unreadable = append(r.facts.Unreadable, "labels and taints of kubeadm")
	}
}

// literal returns the elements of the literals of a package whose type is written so.
func (r *reader) literal(name string, is func(string) bool) []ast.Expr {
	var elements []ast.Expr
	if from := r.read(name); from != nil {
		for _, file := range from.files {
			ast.Inspect(file, func(node ast.Node) bool {
				if literal, of := node.(*ast.CompositeLit); of && literal.Type != nil {
					var written strings.Builder
					_ = printer.Fprint(&written, r.set, literal.Type)
					if is(written.String()) {
						elements = append(elements, literal.Elts...)
					}
				}
				return true
			})
		}
	}
	return elements
}

func isTrue(expression ast.Expr) bool {
	name, is := expression.(*ast.Ident)
	return is && name.Name == "true"
}

func (r *reader) readAdmission() {
	from := r.read(plugins)
	if from == nil {
		r.facts.Unreadable = append(r.facts.Unreadable, plugins)
		return
	}
	for _, file := range from.files {
		ast.Inspect(file, func(node ast.Node) bool {
			value, is := node.(*ast.ValueSpec)
			if !is || value.Names[0].Name != "AllOrderedPlugins" {
				return true
			}
			for _, element := range value.Values[0].(*ast.CompositeLit).Elts {
				name := r.text(from, element)
				if name == "" {
					r.facts.Unreadable = append(r.facts.Unreadable, "a name in AllOrderedPlugins")
				}
				r.facts.Admission = append(r.facts.Admission, name)
			}
			return false
		})
	}
	sort.Strings(r.facts.Admission)
}

// readImports finds the volume plug-ins and cloud providers that the controller manager and the kubelet are linked with.
func (r *reader) readImports() {
	linked := map[string]bool{}
	for name, each := range r.sources {
		if each == nil || !strings.HasPrefix(name, "k8s.io/kubernetes/") {
			continue
		}
		for _, file := range each.files {
			for _, specification := range file.Imports {
				imported := strings.Trim(specification.Path.Value, `"`)
				if rest, is := strings.CutPrefix(imported, providers); is && !strings.Contains(rest, "/") {
					linked[rest] = true
				}
				if rest, is := strings.CutPrefix(imported, volumes); is && strings.Contains(name, "/app") {
					if volume := r.read(imported); volume != nil && has(volume, "ProbeVolumePlugins") {
						r.facts.Volumes[rest] = has(volume, "NewAttacher")
					}
				}
			}
		}
	}
	r.facts.Providers = names(linked)
}

func has(from *source, function string) bool {
	for _, file := range from.files {
		for _, declaration := range file.Decls {
			if found, is := declaration.(*ast.FuncDecl); is && found.Name.Name == function {
				return true
			}
		}
	}
	return false
}

func names[Value any](of map[string]Value) []string {
	list := make([]string, 0, len(of))
	for name := range of {
		list = append(list, name)
	}
	sort.Strings(list)
	return list
}
