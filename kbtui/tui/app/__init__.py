"""The shell around the features: the app, its main screen, and the global screens.

`app` opens the knowledge base and runs the global actions; `main` shows chat and notes side by side
and routes messages between them. Help, palette, settings, background work, themes and
status line are here too. Other packages use only `run_app` of `app`; no feature imports this
package.
"""
