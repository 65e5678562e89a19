"""Bringing changes of the same text together: line by line, key by key, file by file.

Plain functions over texts and trees, which write nothing.
"""
