"""Reading of input files: `find_sources`, `plan_blocks`, `make_tokenizer`, `read_block`."""
