"""Diff views, and the dialogs that confirm a change by showing its diff.

`diff_view.DiffView` shows `FileDiff`s, unified or side by side; `lines` lays them out in threads.
`confirm.make_change` prepares a change, asks for confirmation if it touches other files, and
applies it under a progress bar that can be cancelled. `confirm.choose_version` resolves a file
that changed under the editor. `undo_conflict.confirm_and_undo` undoes a change and resolves
conflicts.
"""
