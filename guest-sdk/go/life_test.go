package weir_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
	"github.com/weir-rt/weir/guest-sdk/go/weirtest"
)

func TestAStopLetsHandlersFinish(t *testing.T) {
	var order []string
	var mutex sync.Mutex
	note := func(what string) {
		mutex.Lock()
		defer mutex.Unlock()
		order = append(order, what)
	}
	main := weirtest.New(extension(
		handling("slow", func(ctx context.Context, _ struct{}) (int, error) {
			time.Sleep(time.Second)
			uptime, err := weir.Call[int](ctx, "device.info@1", "uptime", struct{}{})
			note("answered")
			return uptime, err
		}),
		func(ext *weir.Extension) {
			ext.Background(func(ctx context.Context) error {
				<-ctx.Done()
				note("background")
				return ctx.Err()
			})
			ext.OnStop(func(ctx context.Context) error {
				note("stopped")
				_, err := weir.Publish(ctx, "greeter.bye", "bye")
				return err
			})
		},
	))
	weirtest.Fake(main, "device.info@1", "uptime", func(context.Context, struct{}) (int, error) {
		time.Sleep(time.Second)
		return 7, nil
	})
	main.Run(t, func(t *testing.T) {
		answer := make(chan int)
		go func() {
			uptime, err := weirtest.Call[int](main, "greeter@1", "slow", struct{}{})
			equal(t, err, nil)
			answer <- uptime
		}()
		time.Sleep(10 * time.Millisecond)
		main.Stop()
		equal(t, <-answer, 7)
	})
	equal(t, order, []string{"background", "answered", "stopped"})
	equal(t, main.Published()[0].Name, "greeter.bye")
}

func TestAFailedStartEndsTheExtension(t *testing.T) {
	main := weirtest.New(extension(func(ext *weir.Extension) {
		ext.OnStart(func(ctx context.Context) error {
			path, found, err := weir.Config(ctx, "path")
			if err != nil || found {
				return weir.Errorf("no-file", "`%s` is not there", path)
			}
			return nil
		})
	}))
	main.Config("path", "/data/x")
	err := main.Start(t, func(t *testing.T) { t.Error("it is ready") })
	equal(t, err.Error(), "no-file: `/data/x` is not there")
	equal(t, main.State(), "no-file: `/data/x` is not there")
}

func TestAFailedBackgroundTaskEndsTheExtension(t *testing.T) {
	main := weirtest.New(extension(func(ext *weir.Extension) {
		ext.Background(func(context.Context) error {
			time.Sleep(time.Second)
			return errors.New("the sensor is gone")
		})
	}))
	err := main.Start(t, func(*testing.T) { time.Sleep(time.Minute) })
	equal(t, err.Error(), "the sensor is gone")
}

func TestAnExtensionIsInterruptedAndReady(t *testing.T) {
	main := weirtest.New(extension(handling("say", func(ctx context.Context, reason string) (string, error) {
		if reason == "" {
			weir.Ready(ctx)
		} else {
			weir.Interrupted(ctx, reason)
		}
		return weir.OwnName(ctx) + " " + weir.Sender(ctx), nil
	})))
	main.Run(t, func(t *testing.T) {
		names, err := weirtest.Call[string](main, "greeter@1", "say", "no disk")
		equal(t, err, nil)
		equal(t, names, "greeter main")
		equal(t, main.State(), "no disk")
		_, err = weirtest.Call[string](main, "greeter@1", "say", "")
		equal(t, err, nil)
		equal(t, main.State(), "ready")
	})
}

func TestTheLogKeepsItsStructure(t *testing.T) {
	main := weirtest.New(extension(handling("log", func(ctx context.Context, _ struct{}) (struct{}, error) {
		slog.With("shelf", 3).WithGroup("book").WarnContext(ctx, "worn", "pages", 12, slog.Group("by", "name", "Ada"))
		slog.Log(ctx, weir.LevelTrace, "found")
		return struct{}{}, nil
	})))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[struct{}](main, "greeter@1", "log", struct{}{})
		equal(t, err, nil)
		fields := map[string]string{"shelf": "3", "book.pages": "12", "book.by.name": "Ada"}
		equal(t, main.Logged(), []weirtest.Line{
			{Level: slog.LevelWarn, Message: "worn", Fields: fields},
			{Level: weir.LevelTrace, Message: "found", Fields: map[string]string{}},
		})
	})
}

func TestHandlersThatDoNotFitAreNamed(t *testing.T) {
	main := weirtest.New(extension(handling("greet", greet), handling("greet", greet), func(ext *weir.Extension) {
		weir.HandleJobs(ext, "uploads", 0, func(context.Context, *weir.Job[string]) error { return nil })
	}))
	err := main.Start(t, func(*testing.T) {})
	equal(t, err.Error(), "invalid: the handlers of `greeter` do not fit: `greeter@1` `greet` has two handlers\n"+
		"jobs of `uploads` have a handler, but it is to have 0 of them at once")
}

type Shelf struct {
	Books  []Book           `json:"books" doc:"From left to right."`
	Labels map[string]uint8 `json:"labels,omitempty"`
	Owner  *string          `json:"owner"`
	Bought time.Time        `json:"bought"`
	hidden int
}

type Book struct {
	Title string `json:"title"`
	Next  *Book  `json:"next,omitempty"`
}

func TestTheDescriptionIsThatOfTheTypes(t *testing.T) {
	ext := weir.New(weir.Manifest{ID: "shelves", Version: "1.2.3", Publishes: []string{"shelf.>"}, Env: []string{"TZ"},
		Dirs: []weir.Dir{{Guest: "/data", Writable: true}, {Guest: "/etc/shelf"}}})
	weir.Describe(ext, "shelf@2", "Shelves with books.")
	weir.Handle(ext, "shelf@2", "put", func(context.Context, Shelf) ([]Book, error) { return nil, nil },
		weir.Doc("Puts a shelf."), weir.Fails("full", "There is no room."))
	weir.Handle(ext, "shelf@2", "icon", func(context.Context, struct{}) ([]byte, error) { return nil, nil })
	type Book struct{ Pages int }
	weir.Handle(ext, "shelf@2", "read", func(context.Context, []Book) (struct{}, error) { return struct{}{}, nil })
	weir.Handle(ext, "shelf@2", "count", func(context.Context, int) (uint, error) { return 0, nil })
	weir.Subscribe(ext, "shelf.fell", func(context.Context, weir.Event[Shelf]) error { return nil })
	weir.HandleJobs(ext, "repairs", 1, func(context.Context, *weir.Job[Shelf]) error { return nil })
	weir.DescribeTopic[Shelf](ext, "shelf@2", "shelf.fell", "What fell.")
	weir.DescribeQueue[Shelf](ext, "shelf@2", "repairs", "What to repair.")
	manifest, contracts, err := host.Describe(ext)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "manifest.json", manifest)
	golden(t, "contracts.json", contracts[0])
}

// golden compares with a file of testdata. With the variable GOLDEN it writes the file.
func golden(t *testing.T, name string, found []byte) {
	t.Helper()
	var indented bytes.Buffer
	if err := json.Indent(&indented, found, "", "  "); err != nil {
		t.Fatal(err)
	}
	indented.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if os.Getenv("GOLDEN") != "" {
		if err := os.WriteFile(path, indented.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	expected, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, indented.String(), string(expected))
}

func TestTextsThatAreNotUTF8AreMended(t *testing.T) {
	const raw = "a\xffb"
	main := weirtest.New(extension(
		handling("log", func(ctx context.Context, _ struct{}) (struct{}, error) {
			slog.InfoContext(ctx, raw, "p", raw)
			weir.Interrupted(ctx, raw)
			return struct{}{}, nil
		}),
		handling("fail", func(context.Context, struct{}) (int, error) { return 0, weir.Errorf("bad", "%s", raw) }),
		handling("read", func(context.Context, struct{}) (int, error) {
			_, err := os.ReadFile("/nowhere/" + raw)
			return 0, err
		}),
		handling("panic", func(context.Context, struct{}) (int, error) { panic(raw) }),
	))
	main.Run(t, func(t *testing.T) {
		_, err := weirtest.Call[struct{}](main, "greeter@1", "log", struct{}{})
		equal(t, err, nil)
		equal(t, main.Logged()[0].Message, "a\uFFFDb")
		equal(t, main.Logged()[0].Fields["p"], "a\uFFFDb")
		equal(t, main.State(), "a\uFFFDb")
		_, err = weirtest.Call[int](main, "greeter@1", "fail", struct{}{})
		equal(t, err.Error(), "bad: a\uFFFDb")
		_, err = weirtest.Call[int](main, "greeter@1", "read", struct{}{})
		equal(t, err.Error(), "io: open /nowhere/a\uFFFDb: no such file or directory")
		_, err = weirtest.Call[int](main, "greeter@1", "panic", struct{}{})
		equal(t, weir.Code(err), "unexpected")
		equal(t, main.Logged()[1].Fields["panic"], "a\uFFFDb")
	})
}
