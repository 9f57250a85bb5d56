"""What the profiler does with each message: submissions, tasks to profile, runs to learn from."""
