"""State in SQL. Nothing here knows what a transition means; it keeps what it is given."""
