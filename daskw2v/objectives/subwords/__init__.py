"""Words' vectors made of their characters: the network, how it learns, and the objective."""
