"""Whether the gradients that are told agree with the values."""
