"""Memory of a workspace as front ends use it, and the worker that maintains it.

`service.Memory` is the facade, `worker.BackgroundWorker` condenses sessions and runs jobs one at a
time, `budget` tracks what background work may cost.
"""
