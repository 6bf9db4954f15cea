"""DocMemo: find, cite and measure evidence in long documents.

The package imports nothing heavy; see docs/design.md for the map of its modules.
"""

__version__ = "0.1.0"
