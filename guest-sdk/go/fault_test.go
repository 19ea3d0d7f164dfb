package weir_test

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/weirtest"
)

func TestEveryErrorHasACode(t *testing.T) {
	for expected, err := range map[string]error{
		"":                nil,
		"failed":          errors.New("no"),
		"io":              &fs.PathError{Op: "open", Path: "/x", Err: fs.ErrNotExist},
		"timeout":         context.DeadlineExceeded,
		"not-found":       weir.Errorf("not-found", "no"),
		"limit-exceeded":  &weir.Error{Case: weir.CaseLimitExceeded},
		"invalid-payload": errors.Join(errors.New("no"), weir.Errorf("invalid-payload", "no")),
	} {
		equal(t, weir.Code(err), expected)
	}
	equal(t, weir.Code(&os.LinkError{Op: "rename", Err: fs.ErrExist}), "io")
	equal(t, weir.Code(os.NewSyscallError("fsync", fs.ErrInvalid)), "io")
}

func TestAnAnswerThatDoesNotEncodeIsUnexpected(t *testing.T) {
	main := weirtest.New(extension(
		handling("divide", func(context.Context, struct{}) (float64, error) { return math.Inf(1), nil }),
	))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[float64](main, "greeter@1", "divide", struct{}{})
		equal(t, err.Error(), "unexpected: the answer does not encode")
		line := main.Logged()[0]
		equal(t, line.Message, "an answer does not encode")
		equal(t, line.Fields["operation"], "divide")
		equal(t, line.Fields["error"], "json: unsupported value: +Inf")
	})
}

type brittle struct{}

func (*brittle) UnmarshalJSON([]byte) error { panic("it breaks") }

func TestATypeThatPanicsAsItDecodesDoesNotEndTheExtension(t *testing.T) {
	main := weirtest.New(extension(
		handling("greet", greet),
		handling("break", func(context.Context, brittle) (int, error) { return 0, nil }),
		handling("take", func(ctx context.Context, _ struct{}) (int, error) {
			_, err := weir.Take[brittle](ctx, "parcels")
			return 0, err
		}),
		func(ext *weir.Extension) {
			weir.HandleJobs(ext, "uploads", 1, func(context.Context, *weir.Job[brittle]) error { return nil })
			weir.Subscribe(ext, "broken", func(context.Context, weir.Event[brittle]) error { return nil })
		},
	))
	main.Run(t, func(t *testing.T) {
		weirtest.Put(main, "uploads", 1)
		weirtest.Publish(main, "broken", 1)
		weirtest.Put(main, "parcels", 1)
		_, err := weirtest.CallWithin[int](main, time.Second, "greeter@1", "take", struct{}{})
		equal(t, weir.Code(err), "timeout")
		_, dead := main.Finished("uploads")
		equal(t, dead, 1)
		_, dead = main.Finished("parcels")
		equal(t, dead, 1)
		for _, line := range main.Logged() {
			if !strings.Contains(line.Fields["error"], "it breaks") {
				t.Error(line)
			}
		}
		_, err = weirtest.Call[int](main, "greeter@1", "break", struct{}{})
		equal(t, weir.Code(err), "unexpected")
		_, err = weirtest.Call[Greeting](main, "greeter@1", "greet", Name{Name: "Ada"})
		equal(t, err, nil)
	})
}

func TestPayloadsAreBounded(t *testing.T) {
	const size = 1 << 20
	main := weirtest.New(extension(
		handling("large", func(_ context.Context, size int) ([]byte, error) { return make([]byte, size), nil }),
		handling("bytes", func(_ context.Context, in []byte) (int, error) { return len(in), nil }),
		handling("out", func(ctx context.Context, _ struct{}) (struct{}, error) {
			large := make([]byte, size+1)
			_, published := weir.Publish(ctx, "greeter.large", large)
			_, put := weir.Put(ctx, "letters", large)
			_, called := weir.Call[[]byte](ctx, "device.info@1", "name", large)
			for _, err := range []error{published, put, called} {
				equal(t, errors.Is(err, weir.ErrTooLarge), true)
			}
			return struct{}{}, nil
		}),
	))
	weirtest.Fake(main, "device.info@1", "name", func(_ context.Context, in []byte) ([]byte, error) { return in, nil })
	main.Run(t, func(t *testing.T) {
		answer, err := weirtest.Call[[]byte](main, "greeter@1", "large", size)
		equal(t, err, nil)
		equal(t, len(answer), size)
		_, err = weirtest.Call[[]byte](main, "greeter@1", "large", size+1)
		equal(t, err.Error(), "too-large: payload of 1048577 bytes is over the limit of 1048576")
		_, err = weirtest.Call[int](main, "greeter@1", "bytes", make([]byte, size+1))
		equal(t, errors.Is(err, weir.ErrTooLarge), true)
		_, err = weirtest.Call[struct{}](main, "greeter@1", "out", struct{}{})
		equal(t, err, nil)
	})
}
