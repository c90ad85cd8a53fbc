"""The laboratory: many runs compared. Experiments of papers, the judge of `auto`, measurements of speed.

Nothing in `eign` imports it; it drives the public `Optimizer`.
"""
