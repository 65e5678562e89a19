"""The history: every change with its difference, undo and restore, and going back in time.

`history.HistoryScreen` lists commits, of which `commit_detail` shows one; `history.browse` looks at
any git repository. `time_travel` shows the notes as they were (`travel` asks for the moment) and
brings files back from there. Reading is in `commit_detail`, called in threads.
"""
