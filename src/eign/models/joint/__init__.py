"""One Gaussian process of f and its gradient together."""
