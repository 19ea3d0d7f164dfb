package weir

import (
	"strings"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// utf8Host mends every text that goes to a host. Go's strings are bytes, but Main ends an instance for a text that is not
// UTF-8, and for more bytes than the limit `transfer`: else whoever sends such bytes could end it.
type utf8Host struct{ host.Host }

// Of longer texts Main cuts off the rest. It gets a little more, so that it sees that there is a rest.
const (
	little     = 4
	keptText   = 4096 + little
	keptName   = 64 + little
	keptValue  = 1024 + little
	keptFields = 32 + 1
)

func valid(text string) string { return bounded(text, keptText) }

func bounded(text string, kept int) string {
	return strings.ToValidUTF8(text[:min(len(text), kept)], "\uFFFD")
}

func (h utf8Host) Serve(contract string, operations []string) (uint32, error) {
	names := make([]string, len(operations))
	for index, name := range operations {
		names[index] = valid(name)
	}
	return h.Host.Serve(valid(contract), names)
}

func (h utf8Host) Respond(request uint64, payload []byte, failure *Error) error {
	if failure != nil {
		failure = &Error{Case: failure.Case, Code: valid(failure.Code), Text: valid(failure.Text)}
	}
	return h.Host.Respond(request, payload, failure)
}

func (h utf8Host) Open(contract, operation, provider string) (uint32, error) {
	return h.Host.Open(valid(contract), valid(operation), valid(provider))
}

func (h utf8Host) Subscribe(pattern string) (uint32, error) { return h.Host.Subscribe(valid(pattern)) }

func (h utf8Host) Publish(topic string, payload []byte, options host.Options) (host.Receipt, error) {
	return h.Host.Publish(valid(topic), payload, options)
}

func (h utf8Host) PublishTo(extension, topic string, payload []byte, options host.Options) (host.Receipt, error) {
	return h.Host.PublishTo(valid(extension), valid(topic), payload, options)
}

func (h utf8Host) OpenQueue(name string) (uint32, error) { return h.Host.OpenQueue(valid(name)) }

func (h utf8Host) Interrupted(reason string) { h.Host.Interrupted(valid(reason)) }

func (h utf8Host) Fail(reason string) { h.Host.Fail(valid(reason)) }

func (h utf8Host) Log(level host.Level, message string, fields []host.Field) {
	named := make([]host.Field, min(len(fields), keptFields))
	for index := range named {
		named[index] = host.Field{Name: bounded(fields[index].Name, keptName), Value: bounded(fields[index].Value, keptValue)}
	}
	h.Host.Log(level, valid(message), named)
}

func (h utf8Host) Config(key string) (string, bool, error) { return h.Host.Config(valid(key)) }
