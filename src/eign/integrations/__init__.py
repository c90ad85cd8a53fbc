"""Thin files over other packages and programs. Each is imported by its own name, so that this room weighs nothing."""
