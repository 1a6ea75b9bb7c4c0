"""How the documentation site is built: `make docs`. Every page is Markdown that also reads well where it lies."""

project = "runup"
extensions = ["myst_parser"]
# Dead links between pages, and links to headings that are not there, end the build (`-W`).
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]
html_theme = "furo"
html_title = "runup"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
exclude_patterns = ["decisions/README.md"]
