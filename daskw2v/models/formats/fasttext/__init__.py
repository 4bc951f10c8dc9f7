"""The files of fastText's models, which its save_model writes: read, and written for it and for gensim.

A word's vector is the mean of its own row and of its n-grams' rows (Bojanowski et al. 2017, section 3.2; there it is
their sum). A file has a row for each word, then one for each bucket of n-grams, and then what words were trained
against. A quantized file has codes of these rows, and may have the most frequent n-grams alone.
"""
