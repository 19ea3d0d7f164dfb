/* Adds its name to a note, and hands the note on. */

#include "middle.h"

#include <stdlib.h>
#include <string.h>

bool exports_acme_chain_step_hand(exports_acme_chain_step_note_t *note, exports_acme_chain_step_note_t *result,
                                  exports_acme_chain_step_fault_t *fault) {
    const size_t length = note->path.len;
    middle_string_t *path = malloc((length + 1) * sizeof *path);
    if (path == NULL) abort();
    if (length > 0) {
        memcpy(path, note->path.ptr, length * sizeof *path);
        free(note->path.ptr);
    }
    note->path.ptr = path;
    middle_string_dup(&path[length], "c");
    note->path.len = length + 1;
    /* Both interfaces are one, so their types are laid out alike. */
    const bool is_handed =
        acme_chain_step_hand((acme_chain_step_note_t *)note, (acme_chain_step_note_t *)result, fault);
    exports_acme_chain_step_note_free(note);
    return is_handed;
}
