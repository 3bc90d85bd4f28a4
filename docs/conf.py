"""Sphinx settings. Formulas become MathML at build time: no script, no font and no
network is needed to read them.
"""

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata
from sphinx.writers.html5 import HTML5Translator

import discreet

project = "discreet"
author = "The discreet developers"
copyright = "2026, The discreet developers"
version = release = discreet.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
html_static_path = ["_static"]
html_css_files = ["math.css"]
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
nitpicky = False


def inline_math(self: HTML5Translator, node: nodes.math) -> None:
    self.body.append(convert(node.astext()))
    raise nodes.SkipNode


def display_math(self: HTML5Translator, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{convert(node.astext(), display="block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> ExtensionMetadata:
    app.add_html_math_renderer(
        "mathml", inline_renderers=(inline_math, None), block_renderers=(display_math, None)
    )
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
