"""Looking at what was recorded: log, differences, blame, lines that moved.

Reads objects and keeps what it derives in the cache; writes nothing else. Others use `diff`
(FileDiff, diff_file, as_patch), `blame.LineOrigin`, `reading.HistoryReader` and `open_foreign`.
"""
