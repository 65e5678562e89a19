"""Finding notes: `search.SearchScreen` by content, `switcher.SwitcherScreen` by name.

Both are a `finder.QueryFinder`: an input, a result list, and a preview of the current result.
"""
