"""The judge in 30 to 1,000 dimensions: what is reached in 150 evaluations."""
