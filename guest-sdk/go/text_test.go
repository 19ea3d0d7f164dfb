package weir

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// deaf is a host whose methods note the texts that reach it.
type deaf struct {
	host.Host
	texts  []string
	fields int
}

func (d *deaf) note(texts ...string) { d.texts = append(d.texts, texts...) }

func (d *deaf) Serve(contract string, operations []string) (uint32, error) {
	d.note(append(operations, contract)...)
	return 0, nil
}

func (d *deaf) Respond(_ uint64, _ []byte, failure *Error) error {
	d.note(failure.Code, failure.Text)
	return nil
}

func (d *deaf) Open(contract, operation, provider string) (uint32, error) {
	d.note(contract, operation, provider)
	return 0, nil
}

func (d *deaf) Subscribe(pattern string) (uint32, error) { d.note(pattern); return 0, nil }

func (d *deaf) Publish(topic string, _ []byte, _ host.Options) (host.Receipt, error) {
	d.note(topic)
	return host.Receipt{}, nil
}

func (d *deaf) PublishTo(extension, topic string, _ []byte, _ host.Options) (host.Receipt, error) {
	d.note(extension, topic)
	return host.Receipt{}, nil
}

func (d *deaf) OpenQueue(name string) (uint32, error) { d.note(name); return 0, nil }

func (d *deaf) Interrupted(reason string) { d.note(reason) }

func (d *deaf) Fail(reason string) { d.note(reason) }

func (d *deaf) Log(_ host.Level, message string, fields []host.Field) {
	d.fields = len(fields)
	d.note(message, fields[0].Name, fields[0].Value)
}

func (d *deaf) Config(key string) (string, bool, error) { d.note(key); return "", false, nil }

// A method of the host that takes a text and is not in deaf panics here.
func TestEveryTextReachesMainAsUTF8(t *testing.T) {
	const bad = "a\xffb"
	heard := &deaf{}
	methods := reflect.ValueOf(utf8Host{heard})
	for index := range methods.NumMethod() {
		method := methods.Method(index)
		var arguments []reflect.Value
		texts := 0
		for number := range method.Type().NumIn() {
			argument := reflect.New(method.Type().In(number)).Elem()
			switch value := argument.Addr().Interface().(type) {
			case *string:
				*value = bad
				texts++
			case *[]string:
				*value = []string{bad}
				texts++
			case **Error:
				*value = &Error{Case: CaseHandler, Code: bad, Text: bad}
				texts += 2
			case *[]host.Field:
				*value = []host.Field{{Name: bad, Value: bad}}
				texts += 2
			}
			arguments = append(arguments, argument)
		}
		if texts == 0 {
			continue
		}
		heard.texts = nil
		method.Call(arguments)
		if len(heard.texts) != texts {
			t.Errorf("%s: %d texts, not %d", methods.Type().Method(index).Name, len(heard.texts), texts)
		}
		for _, text := range heard.texts {
			if !utf8.ValidString(text) || text != "a\uFFFDb" {
				t.Errorf("%s: %q", methods.Type().Method(index).Name, text)
			}
		}
	}
}

func TestLongTextsAreCutOff(t *testing.T) {
	heard := &deaf{}
	long := strings.Repeat("\xffa", 1<<20)
	mended := utf8Host{heard}
	_ = mended.Respond(1, nil, &Error{Case: CaseHandler, Code: long, Text: long})
	mended.Log(host.Info, long, slices.Repeat([]host.Field{{Name: long, Value: long}}, 100))
	mended.Fail(long)
	for _, text := range heard.texts {
		if len(text) > 3*keptText {
			t.Errorf("a text of %d bytes", len(text))
		}
	}
	if heard.fields != keptFields {
		t.Errorf("%d fields", heard.fields)
	}
}
