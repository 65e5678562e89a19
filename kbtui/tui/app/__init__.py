"""The frame around the features: the app, its main screen, and what works everywhere.

`app` opens the knowledge base and carries out the global actions; `main` puts chat and notes side
by side and passes on what they ask of each other. Help, palette, tasks, themes and the line of
hints lie here, too. Others use `run_app` of `app`; no feature imports this package.
"""
