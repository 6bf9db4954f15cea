"""Makes the bundled sample corpus: invented documents, and questions whose gold pages come from the layout."""
