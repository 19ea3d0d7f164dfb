// Package export_acme_chain_step adds its name to a note, and hands the note on.
package export_acme_chain_step

import (
	witTypes "go.bytecodealliance.org/pkg/wit/types"

	"step/dist/bindings/acme_chain_step"
)

// Hand adds the name.
func Hand(note acme_chain_step.Note) witTypes.Result[acme_chain_step.Note, acme_chain_step.Fault] {
	note.Path = append(note.Path, "go")
	return acme_chain_step.Hand(note)
}
