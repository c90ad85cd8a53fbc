"""How many examples a slow property gets, beside the number that the profile has for all others."""

from hypothesis import settings

_OF_A_FAST_PROPERTY = 60


def examples(count: int) -> settings:
    """So many in `make test`, and more by the same factor where the profile has more."""
    return settings(max_examples=max(1, count * settings.default.max_examples // _OF_A_FAST_PROPERTY))
