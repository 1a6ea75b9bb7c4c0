"""The schemas of custom resources and built-in kinds: decoding, pruning, defaulting and validation.

    schema = compile_schema(openapi_v3_schema)           # object_schema: once per CRD version; raises SchemaError
    obj, unknown = schema.prune(obj)                     # unknown: ("spec.desiredUpdate.mode", ...)
    obj = schema.default(obj)
    errors = schema.validate(obj, old)                   # FieldErrors: structure, list-map keys, CEL rules

    errors, schemas = compile_crd(crd)                   # crd: faults of a definition, version -> Schema
    kind = builtin_schema(group, version, kind)          # builtin: Pods, Deployments, ...: as Go's codec handles them
    obj, unknown = kind.decode(obj)                      # raises DecodeError in Go's words
    obj = kind.complete(obj)                             # with every zero that Go writes

No function changes its arguments. `root` of both schemas is the tree that server-side apply walks.
"""
