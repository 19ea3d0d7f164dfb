package weir

import "encoding/json"

// Manifest says what an extension is and needs, for the operator. It grants nothing: the operator's file decides.
//
// What has a handler is added: contracts that the extension fulfills, patterns that it subscribes to, and queues that it
// takes from.
type Manifest struct {
	// ID is the suggested id of the extension: `a-z`, `0-9` and `-`.
	ID string
	// Version is the extension's own version.
	Version string
	// DataSince is the oldest version of the extension that can read what this one writes into its stores, as in `1.2.0`.
	// If it is empty, all can.
	DataSince string
	// Requires lists contracts that it cannot do without.
	Requires []string
	// Wants lists contracts that it calls if they are there.
	Wants []string
	// Publishes lists topics, or patterns of topics.
	Publishes []string
	// Subscribes lists patterns beside those with a handler, for Listen.
	Subscribes []string
	// Puts lists queues that it puts jobs into.
	Puts []string
	// Takes lists queues beside those with a handler, for Take.
	Takes []string
	// Dirs lists directories that it opens.
	Dirs []Dir
	// Env lists environment variables that it reads.
	Env []string
}

// Dir is a directory that an extension opens.
type Dir struct {
	// Guest is its path as the extension sees it.
	Guest string
	// Writable says whether the extension writes there.
	Writable bool
}

// section is the content of the component's section `weir:manifest`.
func (e *Extension) section() ([]byte, error) {
	type dir struct {
		Guest string `json:"guest"`
		Mode  string `json:"mode"`
	}
	type grants struct {
		Dirs []dir    `json:"dirs"`
		Env  []string `json:"env"`
		Net  []string `json:"net"`
	}
	manifest := e.manifest
	dirs := []dir{}
	for _, each := range manifest.Dirs {
		mode := "ro"
		if each.Writable {
			mode = "rw"
		}
		dirs = append(dirs, dir{each.Guest, mode})
	}
	var fulfills, subscribes, takes []string
	for _, contract := range e.contracts {
		if len(contract.operations) > 0 {
			fulfills = append(fulfills, contract.name)
		}
	}
	for _, subscription := range e.subscriptions {
		subscribes = append(subscribes, subscription.pattern)
	}
	for _, worker := range e.workers {
		takes = append(takes, worker.queue)
	}
	return json.Marshal(struct {
		Schema     int      `json:"schema"`
		ID         string   `json:"id"`
		Version    string   `json:"version"`
		DataSince  string   `json:"data-since,omitempty"`
		Fulfills   []string `json:"fulfills"`
		Requires   []string `json:"requires"`
		Wants      []string `json:"wants"`
		Publishes  []string `json:"publishes"`
		Subscribes []string `json:"subscribes"`
		Puts       []string `json:"puts"`
		Takes      []string `json:"takes"`
		Grants     grants   `json:"grants"`
	}{
		1, manifest.ID, manifest.Version, manifest.DataSince,
		each(fulfills), each(manifest.Requires), each(manifest.Wants), each(manifest.Publishes),
		each(append(subscribes, manifest.Subscribes...)), each(manifest.Puts),
		each(append(takes, manifest.Takes...)),
		grants{dirs, each(manifest.Env), []string{}},
	})
}

// each is the texts without repetitions, and never nil: JSON has `[]` for none.
func each(texts []string) []string {
	found := []string{}
	known := map[string]bool{}
	for _, text := range texts {
		if !known[text] {
			known[text] = true
			found = append(found, text)
		}
	}
	return found
}
