"""Runs on a Ray cluster: the driver alone writes the database, workers play episodes and send what happens.

`worker` and `messages` know nothing of Ray, so a test can use a worker in its own process; `assignments` knows who
plays what; `connect` and `crew` talk to Ray, which is imported only there and only if a command is given `--cluster`.
"""
