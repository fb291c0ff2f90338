"""Small protocols between what decides and what delivers. No implementation may live here."""
