"""One Gaussian process of f and one of each partial derivative, independent of each other and batched."""
