"""The workspace: the folder that everything is kept in, and how its files are touched.

Others use `layout` (where things lie, which paths are recorded), `files` (safe reading and atomic
writing by checked paths), `jsonl` (append-only logs), `lock`, `scan` (what changed, cheaply)
and `derived` (databases that can be thrown away).
"""
