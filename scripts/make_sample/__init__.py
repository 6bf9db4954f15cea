"""Makes the bundled sample corpus: invented documents, and questions whose gold pages the layout records."""
