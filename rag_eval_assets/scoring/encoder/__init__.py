"""Texts to vectors with BERT-family models: a text's vectors do not depend on its neighbours, to the last bit."""
