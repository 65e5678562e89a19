"""Differences on the screen, and the questions that are asked over one.

`diff_view.DiffView` shows `FileDiff`s, unified or side by side (`lines` lays them out in threads).
`confirm.make_change` works a change out, asks where it touches other files, and makes it below a
bar that can be stopped; `confirm.choose_version` asks where a file changed under the editor;
`undo_conflict.undo_asked` undoes so, and asks about what was changed again since.
"""
