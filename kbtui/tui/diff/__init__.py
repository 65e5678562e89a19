"""Differences on the screen, and the questions that are asked over one.

`diff_view.DiffView` shows `FileDiff`s, unified or side by side (`lines` and `columns` lay them out
in threads). `confirm.ConfirmScreen` asks before something is done, `confirm.choose_version` where a
file changed under the editor; `undo_conflict.undo_settled` undoes, and asks about what was changed
again since.
"""
