"""The notes pane: the tree of entries, the reader and the editor.

The app and time travel show `notes_pane.NotesPane` and call its `open_entry`, `knowledge_ready`
and `knowledge_changed`. Other public modules: `documents` (a file prepared for display), `fuzzy`
(fuzzy search of names), `entry_actions` (new, rename, move, delete, ...), `map.MapScreen` (the link
graph around a note), `why.WhyScreen` (the origin of a line) and `note_area.NoteArea`.
The package imports diff/, widgets/ and below; search/ and history/ stand above it.
"""
