"""Background: memory put together for a workspace, and the worker that runs it.

`service.Memory` is what front ends hold; `worker.BackgroundWorker` condenses sessions and runs jobs
one at a time; `budget` knows what background work may cost.
"""
