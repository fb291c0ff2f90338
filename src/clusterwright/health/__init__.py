"""What a fault means and what to do about it, with the sources side by side."""
