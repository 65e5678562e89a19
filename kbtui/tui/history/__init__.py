"""The history: every change with its diff, undo and restore, and time travel.

`history.HistoryScreen` lists commits and `commit_detail` shows the selected one, reading it in
threads; `history.browse` opens any git repository. `time_travel` shows the notes as they were
(`travel` asks for the date) and restores files from there.
"""
