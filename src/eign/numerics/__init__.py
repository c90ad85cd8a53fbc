"""Numerical linear algebra and optimization for small dense problems: no models, no statistics."""
