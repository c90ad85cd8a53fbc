"""The joint Gaussian process of f and its gradient in many dimensions, without a matrix of n (d + 1) rows."""
