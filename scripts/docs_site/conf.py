"""Sphinx's settings for the documentation; scripts/docs_site.py makes the folder that it reads."""

from __future__ import annotations

from typing import Any, ClassVar

from pygments.lexer import inherit
from pygments.lexers import WgslLexer
from pygments.token import Comment

import dmlgpu

project = "dmlgpu"
author = "dmlgpu contributors"
project_copyright = author
release = version = dmlgpu.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}

myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 120  # seconds a cell
nb_output_stderr = "remove"  # the warning of a software adapter

default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # numpydoc's sections say the types
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "dmlgpu"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Pages that have none below them have no use for a list of these.
html_sidebars: dict[str, list[str]] = {
    pattern: []
    for pattern in ("index", "gallery", "check-your-gpu", "docs/**", "benchmarks/**", "examples/**", "[CS]*")
}
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "show_prev_next": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}


class ImportingWgslLexer(WgslLexer):  # type: ignore[misc]
    """WGSL with the lines ``#import`` of dmlgpu/shaders.py."""

    name = "WGSL with imports"
    aliases: ClassVar[list[str]] = ["wgsl"]
    tokens: ClassVar[dict[str, Any]] = {"root": [(r"#import[^\n]*", Comment.Preproc), inherit]}


def setup(app: Any) -> None:
    """Have Sphinx highlight the shaders."""
    app.add_lexer("wgsl", ImportingWgslLexer)
