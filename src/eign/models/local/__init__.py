"""The model of a few points around a center, in coordinates in which the function is round."""
