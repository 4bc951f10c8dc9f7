"""What training starts from: first rows, base vectors, features, markets."""
