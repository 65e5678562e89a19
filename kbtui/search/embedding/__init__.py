"""Texts to vectors: `prepared` finds, prepares and loads a model, `vectors` keeps what it makes.

An `embedder.Embedder` may run here (onnxruntime), in a child process, or behind an API. Knows
neither files nor queries.
"""
