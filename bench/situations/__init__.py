"""Situations for `tailbound tune`: a planted cause of late messages, its remedies, and changes that only seem to answer it."""
