package weir

import (
	"reflect"
	"slices"
	"strings"
	"sync"
)

// field is a field of a struct, as JSON has it.
type field struct {
	name, doc string
	of        reflect.Type
	required  bool
	asString  bool
	// depth is how many embedded structs it is in.
	depth  int
	tagged bool
}

var knownFields sync.Map // of []field by reflect.Type

// fieldsOf lists the fields that encoding/json takes, with those of embedded structs in their place. reflect.VisibleFields
// would hide by the names of Go, but encoding/json hides by those of JSON.
func fieldsOf(structure reflect.Type) []field {
	if known, ok := knownFields.Load(structure); ok {
		return known.([]field)
	}
	all := collect(structure, nil)
	fields := []field{}
	for _, each := range all {
		if dominates(each, all) {
			fields = append(fields, each)
		}
	}
	knownFields.Store(structure, fields)
	return fields
}

// dominates says whether a field hides all others of its name: it is less deep, or the only one at its depth that has its
// name from a tag, or just the only one. Where none does, the name stands for nothing.
func dominates(one field, all []field) bool {
	same := 0
	for _, other := range all {
		switch {
		case other.name != one.name:
		case other.depth < one.depth, other.depth == one.depth && other.tagged && !one.tagged:
			return false
		case other.depth == one.depth && other.tagged == one.tagged:
			same++
		}
	}
	return same == 1
}

// collect lists all fields. Within are the structs that embed this one.
func collect(structure reflect.Type, within []reflect.Type) (fields []field) {
	if slices.Contains(within, structure) {
		return nil
	}
	for index := range structure.NumField() {
		declared := structure.Field(index)
		tag := declared.Tag.Get("json")
		if tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		of, behind := declared.Type, false
		if declared.Anonymous && of.Kind() == reflect.Pointer {
			of, behind = of.Elem(), true
		}
		embeds := declared.Anonymous && of.Kind() == reflect.Struct
		if embeds && name == "" {
			for _, field := range collect(of, append(within, structure)) {
				field.depth++
				// Without the struct it is left out.
				field.required = field.required && !behind
				fields = append(fields, field)
			}
			continue
		}
		if !declared.IsExported() {
			continue
		}
		scalar := declared.Type
		if scalar.Kind() == reflect.Pointer {
			scalar = scalar.Elem()
		}
		quotable := scalar.Kind() >= reflect.Bool && scalar.Kind() <= reflect.Float64 || scalar.Kind() == reflect.String
		has := func(option string) bool { return slices.Contains(strings.Split(options, ","), option) }
		optional := declared.Type.Kind() == reflect.Pointer || has("omitempty") || has("omitzero")
		tagged := name != ""
		if !tagged {
			name = declared.Name
		}
		fields = append(fields, field{
			name: name, doc: declared.Tag.Get("doc"), of: declared.Type, required: !optional, asString: has("string") && quotable,
			tagged: tagged,
		})
	}
	return fields
}
