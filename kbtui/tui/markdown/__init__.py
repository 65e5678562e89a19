"""Rendering of Markdown into lines of styled text; plain functions that run in any thread."""
