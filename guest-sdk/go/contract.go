package weir

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
)

// contract is what an extension serves under one name, and how it describes it.
type contract struct {
	name, doc  string
	operations []*operation
	topics     []described
	queues     []described
}

type operation struct {
	name, doc string
	in, out   reflect.Type
	errors    []failure
	handle    func(context.Context, []byte) ([]byte, error)
}

type failure struct{ code, when string }

type described struct {
	name, doc string
	of        reflect.Type
}

// Describe describes a contract that the extension serves.
func Describe(ext *Extension, contract, text string) { ext.contract(contract).doc = text }

// DescribeTopic describes a topic of a contract, or a pattern of topics, with events of type T.
func DescribeTopic[T any](ext *Extension, contract, topic, text string) {
	owner := ext.contract(contract)
	owner.topics = append(owner.topics, described{topic, text, typeOf[T]()})
}

// DescribeQueue describes a queue of a contract, with jobs of type T.
func DescribeQueue[T any](ext *Extension, contract, queue, text string) {
	owner := ext.contract(contract)
	owner.queues = append(owner.queues, described{queue, text, typeOf[T]()})
}

// describe writes `manifest.json` and `contracts.json` into a directory.
func (e *Extension) describe(dir string) error {
	if err := e.check(); err != nil {
		return err
	}
	manifest, err := e.section()
	if err != nil {
		return err
	}
	documents, err := e.documents()
	if err != nil {
		return err
	}
	list := []byte("[")
	for index, document := range documents {
		if index > 0 {
			list = append(list, ',')
		}
		list = append(list, document...)
	}
	list = append(list, ']')
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), manifest, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "contracts.json"), list, 0o644)
}

// documents are those of OpenRPC, one for each contract.
func (e *Extension) documents() (documents [][]byte, err error) {
	for _, contract := range e.contracts {
		document, err := json.Marshal(contract.document())
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

type object map[string]any

func (c *contract) document() object {
	schemas := newSchemas()
	methods := []object{}
	for _, operation := range c.operations {
		methods = append(methods, operation.method(c.name, schemas))
	}
	_, version, _ := strings.Cut(c.name, "@")
	document := object{
		"openrpc": "1.3.2",
		"info":    withDoc(object{"title": c.name, "version": version}, c.doc),
		"x-role":  "provider",
		"methods": methods,
	}
	list := func(key, payload string, all []described) {
		var entries []object
		for _, each := range all {
			entry := withDoc(object{"name": each.name}, each.doc)
			if isBytes(each.of) {
				entry["x-bytes"] = true
			} else {
				entry[payload] = schemas.of(each.of)
			}
			entries = append(entries, entry)
		}
		if entries != nil {
			document[key] = entries
		}
	}
	list("x-topics", "payload", c.topics)
	list("x-queues", "job", c.queues)
	if len(schemas.byName) > 0 {
		document["components"] = object{"schemas": schemas.byName}
	}
	return document
}

func (o *operation) method(contract string, schemas *schemas) object {
	method := withDoc(object{"name": contract + "/" + o.name, "params": []object{}}, o.doc)
	if isBytes(o.in) || isBytes(o.out) {
		method["x-bytes"] = true
		method["result"] = object{"name": "bytes", "schema": object{}}
	} else {
		o.arguments(method, schemas)
		method["result"] = object{"name": nameOf(o.out, "result"), "schema": schemas.of(o.out)}
	}
	var errors []object
	for _, failure := range o.errors {
		errors = append(errors, object{"code": -32010, "message": failure.code, "data": failure.when})
	}
	if errors != nil {
		method["errors"] = errors
	}
	return method
}

func (o *operation) arguments(method object, schemas *schemas) {
	if o.in.Kind() != reflect.Struct || decodesItself(o.in) {
		method["x-argument"] = schemas.of(o.in)
		return
	}
	method["paramStructure"] = "by-name"
	if o.in.Name() != "" {
		method["x-arguments"] = o.in.Name()
	}
	params := []object{}
	for _, field := range fieldsOf(o.in) {
		param := object{"name": field.name, "required": field.required, "schema": schemas.field(field)}
		params = append(params, withDoc(param, field.doc))
	}
	method["params"] = params
}

func withDoc(object object, text string) object {
	if text != "" {
		object["description"] = text
	}
	return object
}

func isBytes(of reflect.Type) bool { return of == reflect.TypeFor[[]byte]() }
