/* Adds its name to a note, and hands the note on. */

#include "middle.h"

#include <stdlib.h>

bool exports_acme_chain_step_hand(exports_acme_chain_step_note_t *note, exports_acme_chain_step_note_t *result,
                                  exports_acme_chain_step_fault_t *fault) {
    const size_t length = note->path.len;
    note->path.ptr = realloc(note->path.ptr, (length + 1) * sizeof *note->path.ptr);
    if (note->path.ptr == NULL) abort();
    middle_string_dup(&note->path.ptr[length], "c");
    note->path.len = length + 1;
    /* Both interfaces are one, so their types are laid out alike. */
    const bool is_handed =
        acme_chain_step_hand((acme_chain_step_note_t *)note, (acme_chain_step_note_t *)result, fault);
    exports_acme_chain_step_note_free(note);
    return is_handed;
}
