"""Whitewater beside the tools that a user would pick instead."""
