"""Widgets that several features share: lists, lines of text, dialogs.

`RowList` and `LineView` draw only what is on the screen, which makes 10,000 rows cost as much as
ten: Textual's own OptionList needs 4.0 s for them, its Tree 3.2 s. `Dialog` is the box of every
question. They know no feature.
"""
