package weir

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

type Base struct {
	Name  string `json:"name"`
	Place string `json:"place"`
}

type Extra struct {
	Note string `json:"note"`
	Deep int    `json:"deep"`
}

type other struct {
	Both int
}

type another struct {
	Both int
}

type Whole struct {
	Base
	*Extra
	other
	another
	Name    string `json:"name"`
	Dash    int    `json:"-,"`
	Hidden  int    `json:"-"`
	Place   int    `json:"elsewhere"`
	Three   [3]int `json:"three,omitzero"`
	private int
	Kept    Base           `json:"kept,omitzero"`
	List    []Base         `json:"list,omitempty"`
	Map     map[string]int `json:"map,omitempty"`
	Any     any            `json:"any,omitempty"`
	Text    int            `json:"text,string,omitempty"`
	Bytes   []byte         `json:"bytes,omitempty"`
	Again   *Whole         `json:"again,omitempty"`
}

// What encoding/json writes of a full value is what it takes.
func TestTheFieldsAreThoseOfEncodingJSON(t *testing.T) {
	full := Whole{Extra: &Extra{}, Three: [3]int{1}, Kept: Base{Name: "x"}, List: []Base{{}}, Map: map[string]int{"x": 1},
		Any: 1, Text: 1, Bytes: []byte{1}, Again: &Whole{}, private: 1}
	encoded, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	var written map[string]any
	if err := json.Unmarshal(encoded, &written); err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, field := range fieldsOf(reflect.TypeFor[Whole]()) {
		if listed[field.name] {
			t.Errorf("`%s` is listed twice", field.name)
		}
		listed[field.name] = true
		if _, found := written[field.name]; !found {
			t.Errorf("`%s` is listed, but not written", field.name)
		}
	}
	for name := range written {
		if !listed[name] {
			t.Errorf("`%s` is written, but not listed", name)
		}
	}
	if _, err := decode[Whole](encoded); err != nil {
		t.Error(err)
	}
}

func TestPayloadsFitTheirTypes(t *testing.T) {
	const rest = `"name":"x","-":1,"place":"x","elsewhere":1`
	for payload, expected := range map[string]string{
		`{` + rest + `}`: "",
		`{"n\u0061me":"x","-":1,"place":"x","elsewhere":1}`:                                                        "",
		` { ` + rest + ` , "any" : [ { "]" : "\"}" } , null , -1.5e3 , [ ] ] , "later" : { "a" : [ 1 , { } ] } } `: "",
		`{` + rest + `,"three":[1,2,3],"bytes":"AQ==","list":null,"map":null,"again":null}`:                        "",
		`{` + rest + `,"text":"3","kept":{"name":"","place":"\\"}}`:                                                "",
		`{` + rest + `,"NAME":"Eve"}`:                                                                              "`$` has `NAME` where it is to have `name`",
		`{"place":"x"}`:                                                                                            "`$` lacks `name`",
		`{` + rest + `,"three":[1,2]}`:                                                                             "`$.three` has 2 elements, not 3",
		`{` + rest + `,"three":[1,2,3,4]}`:                                                                         "`$.three` has 4 elements, not 3",
		`{` + rest + `,"three":[]}`:                                                                                "`$.three` has 0 elements, not 3",
		`{` + rest + `,"three":null}`:                                                                              "`$.three` cannot be null",
		`{` + rest + `,"list":[{"name":"x","place":"x"},{"name":null}]}`:                                           "`$.list[1].name` cannot be null",
		`{` + rest + `,"list":[null]}`:                                                                             "`$.list[0]` is no object",
		`{` + rest + `,"map":{"a":1,"b":null}}`:                                                                    "`$.map.b` cannot be null",
		`{` + rest + `,"again":{` + rest + `,"again":{` + rest + `,"kept":{}}}}`:                                   "`$.again.again.kept` lacks `name`",
		`{` + rest + `,"note":null}`:                                                                               "`$.note` cannot be null",
	} {
		_, err := decode[Whole]([]byte(payload))
		found := ""
		if err != nil {
			found = err.Error()
		}
		if found != expected {
			t.Errorf("%s: %s", payload, found)
		}
	}
	for payload, expected := range map[string]bool{`3`: true, ` 3 `: true, `null`: false, ``: false} {
		if _, err := decode[int]([]byte(payload)); (err == nil) != expected {
			t.Errorf("%s: %v", payload, err)
		}
	}
}

func TestAPayloadIsNotCopiedToBeChecked(t *testing.T) {
	payload := []byte("[" + strings.Repeat("1,", 100_000) + "1]")
	if allocated := testing.AllocsPerRun(5, func() {
		if err := complete(reflect.TypeFor[[]int](), payload); err != nil {
			t.Fatal(err)
		}
	}); allocated > 10 {
		t.Errorf("%v allocations", allocated)
	}
}

func FuzzTheWalkerReadsWhatEncodingJSONReads(f *testing.F) {
	f.Add([]byte(`{"name":"x","again":{"list":[{}]},"any":[1,{"a":"\\\""}],"map":{"x":1}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		var value Whole
		if json.Unmarshal(payload, &value) != nil {
			return
		}
		walker := &walker{json: payload}
		walker.skip()
		if rest := bytes.TrimLeft(payload[walker.at:], " \t\r\n"); len(rest) > 0 {
			t.Errorf("%q is left", rest)
		}
		_ = complete(reflect.TypeFor[Whole](), payload)
	})
}
