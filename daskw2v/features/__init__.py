"""Features of words: character n-grams, and what a table says of them."""
