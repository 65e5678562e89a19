"""A workspace as a model or another agent may see it: `view.View`, of which each audience has one.

What an audience may not see isn't in its library, history, search and sessions.
"""
