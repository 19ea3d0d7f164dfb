package weir

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// misfit says where a value is not what its type wants. The place grows on the way out.
type misfit struct{ place, text string }

func (m *misfit) Error() string { return "`$" + m.place + "` " + m.text }

func (m *misfit) within(place string) *misfit { return &misfit{place + m.place, m.text} }

// walker goes through JSON that encoding/json has read already, beside the type. It makes no copy: that of a
// large payload would count against the extension's memory.
type walker struct {
	json []byte
	at   int
}

// complete says where the JSON is not what the type wants. encoding/json takes an absent field, and null, for the zero
// value; names in any case; and a list of any length for an array.
func complete(of reflect.Type, payload []byte) error {
	walker := &walker{json: payload}
	if misfit := walker.value(of); misfit != nil {
		return misfit
	}
	return nil
}

// peek is the next byte that is no space.
func (w *walker) peek() byte {
	for w.json[w.at] == ' ' || w.json[w.at] == '\t' || w.json[w.at] == '\n' || w.json[w.at] == '\r' {
		w.at++
	}
	return w.json[w.at]
}

// more goes to the next member of a list or an object, or past its end.
func (w *walker) more(end byte) bool {
	switch w.peek() {
	case end:
		w.at++
		return false
	case ',':
		w.at++
	}
	return true
}

func (w *walker) text() []byte {
	w.peek()
	begun := w.at
	for w.at++; w.json[w.at] != '"'; w.at++ {
		if w.json[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.json[begun:w.at]
}

// name is that of the next member of an object.
func (w *walker) name() []byte {
	quoted := w.text()
	w.peek()
	// The colon.
	w.at++
	if bytes.IndexByte(quoted, '\\') >= 0 {
		var name string
		if json.Unmarshal(quoted, &name) == nil {
			return []byte(name)
		}
	}
	return quoted[1 : len(quoted)-1]
}

func (w *walker) skip() {
	for depth := 0; ; {
		switch w.peek() {
		case '{', '[':
			depth++
			w.at++
		case '}', ']':
			depth--
			w.at++
		case ',', ':':
			w.at++
			continue
		case '"':
			w.text()
		default:
			for w.at < len(w.json) && !strings.ContainsRune(" \t\n\r,:]}", rune(w.json[w.at])) {
				w.at++
			}
		}
		if depth == 0 {
			return
		}
	}
}

func (w *walker) value(of reflect.Type) *misfit {
	if decodesItself(of) {
		w.skip()
		return nil
	}
	next := w.peek()
	switch of.Kind() {
	case reflect.Pointer:
		if next != 'n' {
			return w.value(of.Elem())
		}
	case reflect.Struct:
		if next != '{' {
			return &misfit{"", "is no object"}
		}
		return w.structure(of)
	case reflect.Array:
		if next == 'n' {
			return &misfit{"", "cannot be null"}
		}
		return w.list(of, of.Len())
	case reflect.Slice:
		// Bytes are a text.
		if next == '[' {
			return w.list(of, -1)
		}
	case reflect.Map:
		if next == '{' {
			return w.entries(of)
		}
	case reflect.Interface:
	default:
		if next == 'n' {
			return &misfit{"", "cannot be null"}
		}
	}
	w.skip()
	return nil
}

func (w *walker) structure(of reflect.Type) *misfit {
	fields := fieldsOf(of)
	seen := make([]bool, len(fields))
	for w.at++; w.more('}'); {
		name := w.name()
		index, other := find(fields, name)
		if other != "" {
			return &misfit{"", fmt.Sprintf("has `%s` where it is to have `%s`", name, other)}
		}
		if index < 0 {
			w.skip()
			continue
		}
		seen[index] = true
		if misfit := w.value(fields[index].of); misfit != nil {
			return misfit.within("." + string(name))
		}
	}
	for index, field := range fields {
		if field.required && !seen[index] {
			return &misfit{"", fmt.Sprintf("lacks `%s`", field.name)}
		}
	}
	return nil
}

// find looks up a name, or that which encoding/json takes it for: it does not regard the case.
func find(fields []field, name []byte) (index int, other string) {
	index = -1
	for at, field := range fields {
		if field.name == string(name) {
			return at, ""
		}
		if strings.EqualFold(field.name, string(name)) {
			other = field.name
		}
	}
	return index, other
}

func (w *walker) list(of reflect.Type, length int) *misfit {
	count := 0
	for w.at++; w.more(']'); count++ {
		if misfit := w.value(of.Elem()); misfit != nil {
			return misfit.within("[" + strconv.Itoa(count) + "]")
		}
	}
	if length >= 0 && count != length {
		return &misfit{"", fmt.Sprintf("has %d elements, not %d", count, length)}
	}
	return nil
}

func (w *walker) entries(of reflect.Type) *misfit {
	for w.at++; w.more('}'); {
		name := w.name()
		if misfit := w.value(of.Elem()); misfit != nil {
			return misfit.within("." + string(name))
		}
	}
	return nil
}
