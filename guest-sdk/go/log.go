package weir

import (
	"context"
	"log/slog"

	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

// LevelTrace is the level below slog.LevelDebug, for following one request through the code.
const LevelTrace = slog.Level(-8)

// LogHandler writes to Main's log, under the id of this extension. Inside Weir it is that of slog's default logger, so
// slog.Info writes there, and log.Print as well. Main decides which levels it keeps.
//
// A line keeps its attributes as fields. Main keeps 4096 bytes of the message, 1024 of a field, and 32 fields.
func LogHandler() slog.Handler { return logHandler{} }

type logHandler struct {
	fields []host.Field
	prefix string
}

func (logHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	link := current.Load()
	if origin, err := from(ctx); err == nil {
		link = origin.link
	}
	if link == nil {
		return nil
	}
	fields := append([]host.Field(nil), h.fields...)
	record.Attrs(func(attribute slog.Attr) bool {
		fields = appendField(fields, h.prefix, attribute)
		return true
	})
	link.host.Log(asLevel(record.Level), record.Message, fields)
	return nil
}

func (h logHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	fields := append([]host.Field(nil), h.fields...)
	for _, attribute := range attributes {
		fields = appendField(fields, h.prefix, attribute)
	}
	return logHandler{fields, h.prefix}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return logHandler{h.fields, h.prefix + name + "."}
}

func appendField(fields []host.Field, prefix string, attribute slog.Attr) []host.Field {
	value := attribute.Value.Resolve()
	if value.Kind() != slog.KindGroup {
		if attribute.Equal(slog.Attr{}) {
			return fields
		}
		return append(fields, host.Field{Name: prefix + attribute.Key, Value: value.String()})
	}
	if attribute.Key != "" {
		prefix += attribute.Key + "."
	}
	for _, member := range value.Group() {
		fields = appendField(fields, prefix, member)
	}
	return fields
}

func asLevel(level slog.Level) host.Level {
	switch {
	case level < slog.LevelDebug:
		return host.Trace
	case level < slog.LevelInfo:
		return host.Debug
	case level < slog.LevelWarn:
		return host.Info
	case level < slog.LevelError:
		return host.Warn
	default:
		return host.Failure
	}
}

// log writes a line of the SDK itself, with names and values.
func (l *link) log(level host.Level, message string, named ...string) {
	var fields []host.Field
	for index := 0; index+1 < len(named); index += 2 {
		fields = append(fields, host.Field{Name: named[index], Value: named[index+1]})
	}
	l.host.Log(level, message, fields)
}

func useLog() { slog.SetDefault(slog.New(LogHandler())) }
