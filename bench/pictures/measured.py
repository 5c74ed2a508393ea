# SPDX-License-Identifier: MIT
"""The pictures that are measured anew each time."""
PICTURES = {}
