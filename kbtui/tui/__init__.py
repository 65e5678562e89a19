"""The app: everything that a person sees, and the only room that imports Textual.

One folder a feature (`chat`, `notes`, `history`, `inbox`, `search`), each with its screen or pane;
below them what they share: `diff`, `markdown`, `widgets`, `terminal`, `actions`, and `messages`, by
which features ask for each other without importing each other. `app` knows them all. Whoever starts
the app calls `kbtui.tui.app.app.run_app`.
"""
