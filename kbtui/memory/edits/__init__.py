"""Edits: the one engine by which facts get into files.

`editor.Editor` is for everybody who writes memory: the Consolidator, Dream, the agent's tools,
importers and other programs. It takes facts, works out the smallest edits, asks one chain of
guards, and makes one commit of what may be done and proposals of what a person must decide on.
"""
