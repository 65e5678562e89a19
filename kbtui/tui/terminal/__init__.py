"""The terminal and the machine around the app: signals, clipboard, editor, keys typed ahead.

Also the files that only the app needs: its state between two runs and its themes. `background`
runs work beside the screen. Every package of the app may use it; it uses none of them.
"""
