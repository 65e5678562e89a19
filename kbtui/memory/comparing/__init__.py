"""Comparing lines: whether two are about the same thing, and which values they differ in."""
