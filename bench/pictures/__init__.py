# SPDX-License-Identifier: MIT
"""Pictures of the documents, one module each: draw(what was measured) is the text of an SVG."""
