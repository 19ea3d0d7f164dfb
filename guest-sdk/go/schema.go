package weir

import (
	"encoding/json"
	"reflect"
	"strconv"
	"time"
)

// schemas are the types with a name, as JSON Schema.
type schemas struct {
	byName map[string]any
	names  map[reflect.Type]string
}

func newSchemas() *schemas { return &schemas{map[string]any{}, map[reflect.Type]string{}} }

// of is the schema of a type: what encoding/json makes of it.
func (s *schemas) of(of reflect.Type) object {
	switch {
	case of == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case of == reflect.TypeFor[json.RawMessage](), of.Implements(jsonUnmarshaler),
		reflect.PointerTo(of).Implements(jsonUnmarshaler):
		return object{}
	case reflect.PointerTo(of).Implements(textUnmarshaler):
		return object{"type": "string"}
	}
	switch of.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "format": of.Kind().String()}
	case reflect.Int:
		return object{"type": "integer", "format": "int64"}
	case reflect.Uint, reflect.Uintptr:
		return object{"type": "integer", "format": "uint64"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Pointer:
		return object{"anyOf": []any{s.of(of.Elem()), object{"type": "null"}}}
	case reflect.Slice:
		if of.Elem().Kind() == reflect.Uint8 {
			// Base64, as encoding/json writes bytes inside a value.
			return object{"type": "string", "format": "byte"}
		}
		// A nil slice is null, and so is a nil map.
		return object{"type": []string{"array", "null"}, "items": s.of(of.Elem())}
	case reflect.Array:
		return object{"type": "array", "items": s.of(of.Elem()), "minItems": of.Len(), "maxItems": of.Len()}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(of.Elem())}
	case reflect.Struct:
		return s.named(of)
	default:
		return object{}
	}
}

func (s *schemas) named(of reflect.Type) object {
	if of.Name() == "" {
		return s.structure(of)
	}
	name, known := s.names[of]
	if !known {
		name = nameOf(of, "")
		// Another package may have a type of the same name.
		for number := 2; s.byName[name] != nil; number++ {
			name = nameOf(of, "") + strconv.Itoa(number)
		}
		// A type may contain itself.
		s.names[of], s.byName[name] = name, true
		s.byName[name] = s.structure(of)
	}
	return object{"$ref": "#/components/schemas/" + name}
}

func (s *schemas) structure(of reflect.Type) object {
	properties, required := object{}, []string{}
	for _, field := range fieldsOf(of) {
		properties[field.name] = withDoc(s.field(field), field.doc)
		if field.required {
			required = append(required, field.name)
		}
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

func (s *schemas) field(field field) object {
	if field.asString {
		return object{"type": "string"}
	}
	schema := s.of(field.of)
	if types, ok := schema["type"].([]string); ok && !field.required {
		// It is left out instead.
		schema["type"] = types[0]
	}
	return schema
}

// nameOf is the name of a type, or the other one if it has none that a reference can hold.
func nameOf(of reflect.Type, other string) string {
	if of.Name() == "" || of.PkgPath() == "" {
		return other
	}
	name := []rune(of.Name())
	for index, letter := range name {
		if letter != '_' && (letter < '0' || letter > '9') && (letter < 'A' || letter > 'Z') && (letter < 'a' || letter > 'z') {
			name[index] = '_'
		}
	}
	return string(name)
}
