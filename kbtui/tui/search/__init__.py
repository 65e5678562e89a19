"""Finding: `search.SearchScreen` by what texts say, `switcher.SwitcherScreen` by name.

Both are a `finder.Finder`: a line to type in, a list, and a preview of what the cursor is on.
"""
