// Adds its name to a note. A note without text is refused.

export const step = {
  hand(note) {
    if (note.text === "") throw "empty";
    return { ...note, path: [...note.path, "javascript"] };
  },
};
