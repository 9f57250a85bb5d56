"""Where a task's code comes from: the message itself, a folder, the bundle store, git. All of it is hostile."""
