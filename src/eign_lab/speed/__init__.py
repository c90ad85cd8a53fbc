"""How fast eign is beside BoTorch, measured in one process."""
