"""Views: a workspace as a model or another agent may see it, one `view.View` per audience.

A view's library, history, search and sessions don't contain what its audience may not see.
"""
