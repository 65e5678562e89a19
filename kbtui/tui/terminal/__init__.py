"""The terminal and the operating system around the app: signals, clipboard, editor, type-ahead.

Also the files that only the app needs (its state between runs, its themes) and `background`, which
runs work off the screen's path. Every package of the app may import it; it imports none of them.
"""
