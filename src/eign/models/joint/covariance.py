"""The covariance matrix of the observed rows of (f, grad f), and what its hyperparameter derivatives contribute.

No derivative of the matrix is ever formed: the MAP objective needs tr(W dC) for one matrix W, which is contracted block
by block in one pass over W, and dC a for one vector a, which is a few batched matrix products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eign.arrays import Array
from eign.models.joint.rows import Blocks, FoldedWeights, TrainingPairs
from eign.models.joint.terms import TermPairs


def covariance_matrix(terms: Sequence[TermPairs], pairs: TrainingPairs, *, out: Array | None = None) -> Array:
    """The scaled covariance C of the observed rows, of which only the lower triangle is filled in.

    `out` is a C-ordered array over all rows of the scheme to write to, which is the result if all are observed.
    """
    matrix = np.empty((pairs.scheme_rows,) * 2) if out is None else out
    for term in terms:
        term.add_covariance(Blocks.of(matrix, pairs), first=term is terms[0])
    return matrix if pairs.observed is None else matrix[np.ix_(pairs.observed, pairs.observed)]


def trace_derivatives(terms: Sequence[TermPairs], pairs: TrainingPairs, weights: Array) -> list[Array]:
    """The traces tr(W dC) by log lengthscales and log outputscale of each term; of W the lower triangle is read."""
    if pairs.observed is not None:
        scheme = np.zeros((pairs.scheme_rows,) * 2)
        scheme[np.ix_(pairs.observed, pairs.observed)] = weights
        weights = scheme
    folded = FoldedWeights.of(Blocks.of(weights, pairs))
    return [term.traces(folded) for term in terms]


def derivative_products(terms: Sequence[TermPairs], pairs: TrainingPairs, vector: Array) -> list[Array]:
    """The products dC a for the log lengthscales and the log outputscale of each term: rows x (d+1) each."""
    count, m, n = pairs.shape
    scheme = vector
    if pairs.observed is not None:
        scheme = np.zeros(pairs.scheme_rows)
        scheme[pairs.observed] = vector
    products = [term.products(scheme[:n], scheme[n:].reshape(count, m)) for term in terms]
    return products if pairs.observed is None else [product[pairs.observed] for product in products]
