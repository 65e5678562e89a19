"""Embeddings: `prepared` finds, prepares and loads a model, `vectors` stores its output.

An `embedder.Embedder` runs in this process (onnxruntime), in a child process, or behind an API.
Nothing here knows of files or queries.
"""
