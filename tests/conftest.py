"""What all tests may ask for."""

from whitewater.testing.fixtures import device, folder, served, tasks_that_another_process_could_do

__all__ = ["device", "folder", "served", "tasks_that_another_process_could_do"]
