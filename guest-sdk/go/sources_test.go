package weir_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	weir "github.com/weir-rt/weir/guest-sdk/go"
	"github.com/weir-rt/weir/guest-sdk/go/internal/host"
)

func describe(ext *weir.Extension) ([]byte, [][]byte, error) { return host.Describe(ext) }

func TestTheWITIsThatOfWeir(t *testing.T) {
	const original = "../../wit"
	if _, err := os.Stat(original); err != nil {
		t.Skip("this is no clone of Weir")
	}
	for _, name := range []string{"iec.wit", "deps/cli.wit", "deps/clocks.wit", "deps/config.wit", "deps/filesystem.wit",
		"deps/io.wit", "deps/random.wit", "deps/sockets.wit"} {
		ours, err := os.ReadFile(filepath.Join("wit", name))
		theirs, otherErr := os.ReadFile(filepath.Join(original, name))
		if err != nil || otherErr != nil || !bytes.Equal(ours, theirs) {
			t.Errorf("`wit/%s` is old: run `generate.sh`", name)
		}
	}
}
