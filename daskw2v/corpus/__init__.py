"""From URLs to pieces of text or tokens: `find_sources`, `plan_blocks`, `make_tokenizer`, `read_block`."""
