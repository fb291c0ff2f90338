"""Values → text, JSON, HTML. Judges nothing and computes no figure; what is printed was decided below."""
