// See weir_sdk.h. These are texts for Main, log lines and errors.
#include "weir_sdk.h"
#include <stdlib.h>

// Bytes up to the first that is no UTF-8: Main ends an instance for such a text.
static size_t valid_length(const char *text) {
  const unsigned char *at = (const unsigned char *)text;
  while (*at != 0) {
    int more = *at < 0x80 ? 0 : *at < 0xc2 ? -1 : *at < 0xe0 ? 1 : *at < 0xf0 ? 2 : *at < 0xf5 ? 3 : -1;
    if (more < 0) break;
    for (int i = 1; i <= more; i++) {
      if ((at[i] & 0xc0) != 0x80) return (size_t)(at - (const unsigned char *)text);
    }
    // Too long a form, half of a pair, or beyond the last character.
    if ((*at == 0xe0 && at[1] < 0xa0) || (*at == 0xed && at[1] > 0x9f) || (*at == 0xf0 && at[1] < 0x90) ||
        (*at == 0xf4 && at[1] > 0x8f)) {
      break;
    }
    at += more + 1;
  }
  return (size_t)(at - (const unsigned char *)text);
}

weir_string_t wr_string(const char *text) { return (weir_string_t){(uint8_t *)text, valid_length(text)}; }

int wr_failed(const char *reason) {
  weir_string_t text = wr_string(reason);
  weir_iec_lifecycle_error(&text);
  return 1;
}

void wr_ready(void) { weir_iec_lifecycle_ready(); }

void wr_interrupted(const char *reason) {
  weir_string_t text = wr_string(reason);
  weir_iec_lifecycle_interrupted(&text);
}

void wr_log(weir_iec_log_level_t level, const char *message, const char *const (*fields)[2], size_t count) {
  weir_iec_log_field_t *pairs = calloc(count + 1, sizeof *pairs);
  if (pairs == NULL) abort();
  for (size_t i = 0; i < count; i++) {
    pairs[i] = (weir_iec_log_field_t){wr_string(fields[i][0]), wr_string(fields[i][1])};
  }
  weir_string_t text = wr_string(message);
  weir_iec_log_list_field_t list = {pairs, count};
  weir_iec_log_write(level, &text, &list);
  free(pairs);
}

const char *wr_error_case(const wr_error *error) {
  static const char *const cases[] = {
      "permission-denied", "unknown-contract", "no-provider",    "not-ready",      "timeout",   "overloaded", "peer-gone",
      "trapped",           "limit-exceeded",   "would-deadlock", "too-large",      "invalid",   "handler",
  };
  return cases[error->tag];
}

void wr_error_free(wr_error *error) { weir_iec_types_error_free(error); }
