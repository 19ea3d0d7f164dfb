package weir

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// encode is the value as it travels: JSON, or the bytes themselves.
func encode[T any](value T) ([]byte, error) {
	if raw, ok := any(value).([]byte); ok {
		return raw, nil
	}
	return json.Marshal(value)
}

// decode reads what encode has made. No payload stands for no arguments.
func decode[T any](payload []byte) (value T, err error) {
	if raw, ok := any(&value).(*[]byte); ok {
		*raw = payload
		return value, nil
	}
	if len(payload) == 0 || string(payload) == "null" {
		payload = []byte("{}")
		if typeOf[T]().Kind() != reflect.Struct {
			payload = []byte("null")
		}
	}
	if err := json.Unmarshal(payload, &value); err != nil {
		return value, plain(err)
	}
	return value, complete(typeOf[T](), payload)
}

// plain is the error without the names of Go.
func plain(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	place := "$"
	if wrong.Field != "" {
		place += "." + wrong.Field
	}
	return fmt.Errorf("`%s` cannot be a %s", place, wrong.Value)
}

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func decodesItself(expected reflect.Type) bool {
	pointer := reflect.PointerTo(expected)
	return pointer.Implements(jsonUnmarshaler) || pointer.Implements(textUnmarshaler)
}
