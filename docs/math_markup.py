"""Formulas in the documentation as MathML, which browsers show by themselves: no script, no external load.

The docstrings write mathematics the way scientific Python does (`.. math::`, :math:`x`), the pages with dollars;
`DocstringMath` turns the first into the second, `on_page_content` the second into MathML when a page is built.
"""

import html
import re
from typing import Any

from griffe import Extension, Object
from latex2mathml.converter import convert

_ARITHMATEX = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_BLOCK = re.compile(r"^( *)\.\. math:: *(.*(?:\n\1 +\S.*)*)", re.MULTILINE)
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_ROLE = re.compile(r":(math|func):`([^`]+)`")


def on_page_content(page_html: str, **_: Any) -> str:
    """MkDocs hook: replace marked LaTeX by MathML."""

    def to_mathml(match: re.Match[str]) -> str:
        display = "block" if match[1] == "div" else "inline"
        return convert(html.unescape(match[2]), display=display)

    return _ARITHMATEX.sub(to_mathml, page_html)


class DocstringMath(Extension):
    """Griffe extension: mathematics and cross-references of docstrings in Markdown."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Rewrite the docstring of everything that has one."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)


def to_markdown(docstring: str) -> str:
    """Rewrite `.. math::` blocks, :math: and :func: roles, and put examples into fences.

    >>> to_markdown(".. math:: x^2")
    '$$x^2$$'
    >>> to_markdown("the root :math:`x` of :func:`eign.formulas.ei_gn`")
    'the root $x$ of [`ei_gn`][eign.formulas.ei_gn]'
    >>> to_markdown(chr(62) * 3 + " 1 + 1" + chr(10) + "2").split()
    ['```pycon', '>>>', '1', '+', '1', '2', '```']
    """

    def block(match: re.Match[str]) -> str:
        return f"{match[1]}$${' '.join(match[2].split())}$$"

    def role(match: re.Match[str]) -> str:
        return f"${match[2]}$" if match[1] == "math" else f"[`{match[2].rpartition('.')[2]}`][{match[2]}]"

    def example(match: re.Match[str]) -> str:
        return f"```pycon\n{match[0]}\n```"

    return _EXAMPLE.sub(example, _ROLE.sub(role, _BLOCK.sub(block, docstring)))
