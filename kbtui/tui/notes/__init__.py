"""The notes: the tree of entries, reading one, writing in it.

`notes_pane.NotesPane` is the pane; the app and time travel show it and call `open_entry`,
`knowledge_ready` and `knowledge_changed`. Others may use `documents` (a file as it is shown),
`fuzzy` (entries by a few letters), `entry_actions` (new, rename, move, delete, ...),
`map.MapScreen` (what is around a note), `why.WhyScreen` (where a line comes from) and
`note_area.NoteArea` (the text field).
The package imports diff/, widgets/ and below; search/ and history/ stand above it.
"""
